package cache

import (
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"
)

func TestRoom(t *testing.T) {
	const files = math.MaxInt64
	noAnswer := errors.New("no answer")
	for name, tc := range map[string]struct {
		free   space
		err    error
		tables int64
		want   error
	}{
		"plenty":               {space{1 << 40, files}, nil, 1 << 30, nil},
		"just enough":          {space{roomReserve, fileReserve}, nil, 0, nil},
		"a byte short":         {space{roomReserve - 1, files}, nil, 0, ErrFull},
		"a file short":         {space{1 << 40, fileReserve - 1}, nil, 0, ErrFull},
		"none":                 {space{}, nil, 0, ErrFull},
		"room to compact":      {space{roomReserve + 5000, files}, nil, 5000, nil},
		"no room to compact":   {space{roomReserve + 4999, files}, nil, 5000, ErrFull},
		"a large store":        {space{roomReserve + maxCompaction, files}, nil, 1 << 40, nil},
		"the system is silent": {space{}, noAnswer, 0, ErrDisk},
	} {
		t.Run(name, func(t *testing.T) {
			r := &room{
				free:   func() (space, error) { return tc.free, tc.err },
				tables: func() int64 { return tc.tables },
				log:    roomLog{to: slog.New(slog.DiscardHandler)},
			}
			if err := r.check(time.Now()); !errors.Is(err, tc.want) || tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

// A look counts for a few milliseconds, whichever way the clock goes.
func TestRoomLooksAgain(t *testing.T) {
	free := space{math.MaxInt64, math.MaxInt64}
	r := newRoom(Memory, slog.New(slog.DiscardHandler))
	r.free = func() (space, error) { return free, nil }
	now := time.Now()
	steps := []struct {
		after time.Duration
		free  int64
		want  error
	}{
		{0, math.MaxInt64, nil},
		{roomInterval - 1, 0, nil},
		{1, 0, ErrFull},
		{roomInterval - 1, math.MaxInt64, ErrFull},
		{1, math.MaxInt64, nil},
		{-time.Hour, 0, ErrFull},
	}
	for i, step := range steps {
		now, free.bytes = now.Add(step.after), step.free
		if err := r.check(now); !errors.Is(err, step.want) {
			t.Errorf("step %d: %v, want %v", i, err, step.want)
		}
	}
}

// What the tables take is what the directory says.
func TestTableBytes(t *testing.T) {
	dir := t.TempDir()
	d := writeTables(t, dir, 2_500)
	if got, want := d.room.tables(), sizeOf(t, dir, "*.sst"); got != want || got == 0 {
		t.Errorf("%d bytes, the directory says %d", got, want)
	}
}
