package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// logTo is a logger whose lines a test can read.
func logTo(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// Keys are any bytes, and a path is whatever the file system takes.
func TestOpen_Again_FindsWhatWasWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a?b#c%20 d")
	keys := []string{"", "\x00", "a\x00b", "a", "\xff\xfe", "Ä", "/", "a/b", strings.Repeat("k", 1024), "'; --"}
	var log bytes.Buffer
	for round := range 3 {
		s := must.Get(Open(Options{Dir: dir, Sync: round == 1, Log: logTo(&log)}))(t)
		table := s.Table("t")
		seen := 0
		if err := table.Each(ctx, func(key string, value []byte) bool {
			seen++
			return string(value) == fmt.Sprint(round-1, " of ", key)
		}); err != nil || seen != len(keys)*min(round, 1) {
			t.Errorf("round %d: visited %d of %d, %v", round, seen, len(keys), err)
		}
		for _, key := range keys {
			value := fmt.Sprint(round, " of ", key)
			put(t, table, key, value, never)
			s.records.(*disk).hot.Clear()
			expect(t, table, key, value)
		}
		must.OK(t, errors.Join(s.Close(), s.Close()))
	}
	if log.Len() > 0 {
		t.Errorf("a directory that was closed is logged: %s", &log)
	}
}

func TestOpen_FileOrInUse_Refuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(Options{Dir: file}); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), file) {
		t.Errorf("a file: %v", err)
	}
	dir := t.TempDir()
	table := open(t, Options{Dir: dir}).Table("t")
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	put(t, table, "key", "value", never)
}

// A path may be too long for SQLite alone.
func TestOpen_SQLiteFails_NamesItsCode(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 255), strings.Repeat("d", 255))
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrUnavailable) || !strings.HasSuffix(err.Error(), "(SQLITE_CANTOPEN)") {
		t.Errorf("a long path: %v", err)
	}
}

// writeUntilKilled is a child that prints each key once its write is acknowledged.
func writeUntilKilled(t *testing.T, dir string) {
	table := open(t, Options{Dir: dir}).Table("t")
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprint("key", w, "-", i)
				if err := tryPut(table, key, "of "+key, never); err != nil {
					panic(err)
				}
				fmt.Printf("acknowledged %s\n", key)
			}
		}()
	}
	select {}
}

// Damage is done to a directory that was closed, and to one of a process that was killed.
func TestOpen_Damage_NamesTheFileOrWarns(t *testing.T) {
	t.Parallel()
	if dir := servertest.ChildArgument(); dir != "" {
		writeUntilKilled(t, dir)
	}
	whole, closed := t.TempDir(), t.TempDir()
	var keys []string
	servertest.KillAfter(t, servertest.Child(t, whole), 2000, func(line string) bool {
		key, counts := strings.CutPrefix(line, "acknowledged ")
		if counts {
			keys = append(keys, key)
		}
		return counts
	})
	copyFiles(t, whole, closed)
	s := must.Get(Open(Options{Dir: closed}))(t)
	for _, key := range keys { // undamaged, it has all that was acknowledged
		expect(t, s.Table("t"), key, "of "+key)
	}
	must.OK(t, s.Close())
	const database, log = databaseName, databaseName + logSuffix
	key := keys[len(keys)/2]
	gone := func(b []byte) []byte { return nil }
	half := func(b []byte) []byte { return b[:len(b)/2] }
	zeroed := func(b []byte) []byte { clear(b[len(b)/2 : len(b)/2+4096]); return b }
	replaced := func(old, new string) func(b []byte) []byte {
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(new)) }
	}
	for name, tc := range map[string]struct {
		from, file string
		damage     func([]byte) []byte
		opens      bool
	}{
		"database missing":         {closed, database, nil, false},
		"database empty":           {closed, database, gone, false},
		"database cut":             {closed, database, half, false},
		"database without header":  {closed, database, replaced("SQLite format", "SQLite garbage"), false},
		"page zeroed":              {closed, database, zeroed, false},
		"key out of order":         {closed, database, replaced("t/"+key, "zz"+key), false},
		"value changed":            {closed, database, replaced("of "+key, "of "+strings.ToUpper(key)), false},
		"killed, database missing": {whole, database, nil, false},
		"killed, database empty":   {whole, database, gone, false},
		"killed, log missing":      {whole, log, nil, false},
		"killed, log empty":        {whole, log, gone, false},
		"killed, log cut":          {whole, log, half, false},
		"killed, power cut":        {whole, lockName, anotherBoot, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			copyFiles(t, tc.from, dir)
			path := filepath.Join(dir, tc.file)
			damage(t, path, tc.damage)
			var said bytes.Buffer
			s, err := Open(Options{Dir: dir, Log: logTo(&said)})
			if !tc.opens {
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path) {
					t.Fatalf("opened: %v", err)
				}
				return
			}
			must.OK(t, err)
			defer s.Close()
			if tc.from == whole && !strings.Contains(said.String(), "are lost") {
				t.Errorf("no warning: %s", &said)
			}
			for _, key := range keys {
				if value, err := s.Table("t").Get(ctx, key); err != nil || value != nil && string(value) != "of "+key {
					t.Fatalf("%s is %q, %v", key, value, err)
				}
			}
		})
	}
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{lockName, databaseName, databaseName + logSuffix, databaseName + indexSuffix} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// anotherBoot makes the state one of before the machine was started.
func anotherBoot(state []byte) []byte { return append(state[:len(stateOpen)], "another boot\n"...) }

// damage changes a file, or removes it.
func damage(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	if change == nil {
		must.OK(t, os.Remove(path))
		return
	}
	b := must.Get(os.ReadFile(path))(t)
	after := change(bytes.Clone(b))
	if bytes.Equal(b, after) {
		t.Fatal("nothing was damaged")
	}
	must.OK(t, os.WriteFile(path, after, 0o600))
}

// Later writes by a clock that is right do not hide what was written by one that was ahead.
func TestOpen_RecordInTheFuture_Warns(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), newClock(time.Now().UnixMilli())
	opened := func(change func(table *Table)) string {
		var log bytes.Buffer
		s := must.Get(Open(Options{Dir: dir, Now: now.Load, Log: logTo(&log)}))(t)
		must.OK(t, s.Ready(ctx))
		change(s.Table("t"))
		must.OK(t, s.Close())
		return log.String()
	}
	write := func(key, value string) func(*Table) {
		return func(table *Table) { put(t, table, key, value, never) }
	}
	if said := opened(write("right", "1")) + opened(write("right", "2")); said != "" {
		t.Errorf("a clock that is right: %s", said)
	}
	const ahead = 25 * time.Hour
	now.Add(ahead.Milliseconds())
	opened(write("ahead", "1"))
	now.Add(-ahead.Milliseconds())
	for i, change := range []func(*Table){write("right", "3"), write("ahead", "2"), func(table *Table) { remove(t, table, "ahead") }} {
		if said := opened(change); strings.Count(said, "\n") != 1 || !strings.Contains(said, "records=1") || !strings.Contains(said, "ahead=25h0m0s") {
			t.Errorf("start %d after a clock that was ahead: %s", i, said)
		}
	}
	if said := opened(write("right", "4")); said != "" {
		t.Errorf("after a reset: %s", said)
	}
}

func TestSweep_ExpiredRecords_GoAfterAnHour(t *testing.T) {
	t.Parallel()
	now := newClock(0)
	s := open(t, Options{Dir: t.TempDir(), Now: now.Load})
	batched, wait := Batch(ctx)
	for i := range 800 { // more than one sweep looks at
		must.OK(t, s.Table("t").Update(batched, fmt.Sprint("key", i), func([]byte, int64) ([]byte, int64) { return []byte("value"), []int64{1000, never}[i%2] }))
	}
	must.OK(t, wait(ctx))
	d := s.records.(*disk)
	for _, tt := range []struct{ at, left int64 }{{1000 + grace - 1, 800}, {1000 + grace, 400}} {
		now.Store(tt.at)
		for from, more := "", true; more; more = from != "" {
			from = must.Get(query(ctx, d, func() (string, error) { return d.db.sweep(from, tt.at-grace) }))(t)
		}
		left, err := query(ctx, d, func() (int64, error) {
			return sqlitex.ResultInt64(d.db.conn.Prep("SELECT count(*) FROM records WHERE key LIKE 't/%'"))
		})
		if err != nil || left != tt.left {
			t.Errorf("%d are left at %d, want %d; %v", left, tt.at, tt.left, err)
		}
	}
	d.hot.Clear()
	expect(t, s.Table("t"), "key799", "value")
}

// hang holds up all writes until the function that it returns is called.
func hang(t *testing.T, s *Store) (release func()) {
	t.Helper()
	other, err := sqlite.OpenConn(s.records.(*disk).db.path)
	if err == nil {
		err = sqlitex.ExecuteTransient(other, "BEGIN IMMEDIATE", nil)
	}
	must.OK(t, err)
	return func() {
		err := sqlitex.ExecuteTransient(other, "ROLLBACK", nil)
		if err := errors.Join(err, other.Close()); err != nil {
			t.Error(err)
		}
	}
}

func appendTo(ctx context.Context, table *Table, key, text string) error {
	return table.Update(ctx, key, func(old []byte, _ int64) ([]byte, int64) { return append(bytes.Clone(old), text...), never })
}

// A write that hangs holds up a caller no longer than its context lasts, and later calls see what
// it writes. A step that changes nothing still waits for what it has seen.
func TestUpdate_HangingWrite_EndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	table := s.Table("t")
	put(t, table, "key", "0", never)
	release := hang(t, s)
	same := func(ctx context.Context) error {
		return table.Update(ctx, "pending", func([]byte, int64) ([]byte, int64) { return []byte("value"), never })
	}
	another := func(ctx context.Context) error { return appendTo(ctx, table, "key", "1") }
	for i, call := range []func(ctx context.Context) error{same, another, s.Ready} {
		for range 2 {
			short, end := context.WithTimeout(ctx, 20*time.Millisecond)
			if err := call(short); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnavailable) {
				t.Errorf("call %d: %v", i, err)
			}
			end()
		}
	}
	expect(t, table, "key", "011")
	release()
	must.OK(t, appendTo(ctx, table, "key", "2"))
	s.records.(*disk).hot.Clear()
	expect(t, table, "key", "0112")
	expect(t, table, "pending", "value")
}

// Each read here begins the next one, so that there is always another to answer.
func TestUpdate_ReadsWithoutEnd_IsWrittenBetweenThem(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	d := s.records.(*disk)
	begin := make(chan struct{})
	w := &write{disk: d, key: "t/key", record: record{value: []byte("value"), expires: never}, done: make(chan struct{})}
	reads := 0
	var read func()
	read = func() {
		reads++
		select {
		case <-w.done:
		default:
			_ = d.enqueue(job{query: read}) // the queue has room
		}
	}
	for _, j := range []job{{query: func() { <-begin }}, {write: w}, {}, {query: read}} {
		must.OK(t, d.enqueue(j))
	}
	close(begin)
	must.OK(t, errors.Join(w.wait(ctx), s.Close()))
	if reads > 10 {
		t.Errorf("%d reads were answered before an update was written", reads)
	}
}

// The updates of a batch do not wait, and see each other; the batch waits for all.
func TestBatch_Updates_WaitTogether(t *testing.T) {
	t.Parallel()
	homes(t, func(t *testing.T, o Options) {
		s := open(t, o)
		a, b := s.Table("a"), s.Table("b")
		if o.Dir != "" {
			release := hang(t, s)
			time.AfterFunc(50*time.Millisecond, release)
		}
		batched, wait := Batch(ctx)
		must.OK(t, errors.Join(appendTo(batched, a, "key", "1"), appendTo(batched, b, "key", "x"), appendTo(batched, a, "key", "2")))
		expect(t, a, "key", "12")
		ended, end := context.WithCancel(ctx)
		end()
		if err := wait(ended); o.Dir != "" && !errors.Is(err, context.Canceled) {
			t.Errorf("waited for a hanging write: %v", err)
		}
		must.OK(t, errors.Join(wait(ctx), appendTo(batched, a, "key", "3")))
		if o.Dir != "" {
			s.records.(*disk).hot.Clear()
		}
		expect(t, a, "key", "123")
		expect(t, b, "key", "x")
	})
}

func TestBatch_NotWaitedFor_IsWrittenSoon(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Dir: t.TempDir()})
	batched, _ := Batch(ctx)
	must.OK(t, appendTo(batched, s.Table("t"), "key", "1"))
	servertest.Eventually(t, "the change to be written", func() bool {
		d := s.records.(*disk)
		r, err := query(ctx, d, func() (record, error) { return d.db.get("t/key") })
		return err == nil && string(r.value) == "1"
	})
}

func TestClose_CallsUnderWay_FinishOrSayClosed(t *testing.T) {
	t.Parallel()
	for range 5 {
		s := open(t, Options{Dir: t.TempDir()})
		table := s.Table("t")
		var group sync.WaitGroup
		var written atomic.Int64
		for w := range 8 {
			group.Go(func() {
				for i := 0; ; i++ {
					err := tryPut(table, fmt.Sprint(w, i%50), "value", never)
					if err == nil {
						written.Add(1)
						_, err = table.Get(ctx, fmt.Sprint(i%8, i%50))
					}
					if err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		servertest.Eventually(t, "calls under way", func() bool { return written.Load() > 160 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
	}
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// SQLite answers with the old mode where it cannot keep a log.
func TestOpen_WithoutLog_Refuses(t *testing.T) {
	t.Parallel()
	if _, err := openDatabase(":memory:", false, 0, 0); !errors.Is(err, errNoLog) {
		t.Error(err)
	}
}

// The log is begun anew while writes go on, so that it keeps the size that promises.md names.
func TestUpdate_ManyAtOnce_LogBeginsAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	table := open(t, Options{Dir: dir}).Table("t")
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() {
			for i := range 4000 {
				if err := tryPut(table, fmt.Sprint("key", w, "-", i%500), fmt.Sprint(i, strings.Repeat("v", 1000)), never); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	const most = 16<<20 + 4<<20
	if size := must.Get(os.Stat(filepath.Join(dir, databaseName+logSuffix)))(t).Size(); size > most {
		t.Errorf("the log has %d bytes, want %d at most", size, most)
	}
}
