package throttletest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// recorder is the limiter as one that takes up what was admitted elsewhere, if it does.
func (p patron) recorder() (throttle.Recorder, bool) {
	r, ok := p.limiter.(throttle.Recorder)
	return r, ok
}

// record puts a send on record, and insists that it can be.
func (p patron) record(id throttle.ID, at int64) {
	p.t.Helper()
	r, _ := p.recorder()
	if err := r.Record(context.Background(), p.mailbox, throttle.Admission{ID: id, At: at}); err != nil {
		p.t.Fatalf("record: %v", err)
	}
}

// beginRecord is begin at a limiter that is a Recorder; the others are passed over.
func beginRecord(t *testing.T, open Open, tiers string) (patron, *clocktest.Clock) {
	t.Helper()
	p, clock := begin(t, open, tiers)
	if _, ok := p.recorder(); !ok {
		t.Skip("this limiter records nothing from elsewhere")
	}
	return p, clock
}

// recordKeepsTimes records out of order, before, between and behind what is there.
func recordKeepsTimes(t *testing.T, open Open) {
	p, clock := beginRecord(t, open, "minute=2/60s,hour=9/1h")
	clock.Add(20_000)
	want := throttle.History{{ID: p.admit(), At: clock.Now()}}
	clock.Add(20_000)
	for _, at := range []int64{start + 10_000, clock.Now(), start, start + 30_000} {
		id := throttle.NewID()
		p.record(id, at)
		want = append(want, throttle.Admission{ID: id, At: at})
	}
	slices.SortFunc(want, byTime)
	if h := p.history(); !slices.Equal(h, want) {
		t.Fatalf("history\n got %v\nwant %v", h, want)
	}
	// Five in a minute of two: it is free when all but one of them have left.
	expect(t, p.peek(), "no minute 50000 [minute 0 50000] [hour 4 0]")
	for _, step := range []struct {
		at      int64
		allowed bool
	}{{start + 60_000, false}, {start + 80_000, false}, {start + 89_999, false}, {start + 90_000, true}} {
		clock.Set(step.at)
		if v := p.peek(); v.Allowed != step.allowed {
			t.Fatalf("%d ms after the start: %s", step.at-start, spell(v))
		}
	}
	p.admit()
}

func byTime(a, b throttle.Admission) int {
	return cmp.Or(cmp.Compare(a.At, b.At), bytes.Compare(a.ID[:], b.ID[:]))
}

// recordIsIdempotent by the id, at whatever time, and with what Take has admitted.
func recordIsIdempotent(t *testing.T, open Open) {
	p, clock := beginRecord(t, open, "minute=2/60s,hour=3/1h")
	taken, recorded := p.admit(), throttle.NewID()
	clock.Add(5000)
	for range 3 {
		p.record(taken, start+2000)
		p.record(recorded, start+1000)
		p.record(recorded, clock.Now())
	}
	want := throttle.History{{ID: taken, At: start}, {ID: recorded, At: start + 1000}}
	if h := p.history(); !slices.Equal(h, want) {
		t.Fatalf("history\n got %v\nwant %v", h, want)
	}
	expect(t, p.take(recorded), "yes minute 55000 [minute 0 55000] [hour 1 0]")
	if !p.release(recorded) || p.release(recorded) {
		t.Fatal("what was recorded was not given back, or twice")
	}
	expect(t, p.peek(), "yes  0 [minute 1 0] [hour 2 0]")
	p.record(recorded, start+1000) // nobody knows any more that it was there
	if n := p.reset(); n != 2 {
		t.Fatalf("reset cleared %d, want 2", n)
	}
	expect(t, p.peek(), "yes  0 [minute 2 0] [hour 3 0]")
}

// recordWhatWillNotDo: too old, before all time, ahead of the clock, without an id.
func recordWhatWillNotDo(t *testing.T, open Open) {
	p, clock := beginRecord(t, open, "minute=2/60s,hour=3/1h")
	for _, at := range []int64{start - 3_600_000, start - 86_400_000, 0, -1, -1 << 63} {
		p.record(throttle.NewID(), at)
	}
	if h := p.history(); len(h) != 0 {
		t.Fatalf("history %v, want nothing that has left the longest window", h)
	}
	p.record(throttle.NewID(), start-3_600_000+1)
	first := p.admit()
	for _, ahead := range []int64{1, 86_400_000, 1 << 60} {
		p.record(throttle.NewID(), start+ahead)
	}
	h := p.history()
	if len(h) != 5 || h.Newest() != start || h.Find(first) < 0 {
		t.Fatalf("history %v: what is ahead of the clock counts as the clock", h)
	}
	expect(t, p.peek(), "no hour 3600000 [minute 0 60000] [hour 0 3600000]")
	// A clock that stepped back is behind what it finds, and nothing else has left.
	clock.Set(start - 7_200_000)
	p.record(throttle.NewID(), clock.Now())
	p.record(throttle.NewID(), start)
	if h := p.history(); len(h) != 6 || h.Newest() != start {
		t.Fatalf("history %v by a clock that stepped back", h)
	}
	r, _ := p.recorder()
	if err := r.Record(context.Background(), p.mailbox, throttle.Admission{At: start}); !errors.Is(err, throttle.ErrID) {
		t.Fatalf("record with the zero id: %v", err)
	}
}

// recordBeyondMeasure: of more sends than any tier counts, the newest are kept.
func recordBeyondMeasure(t *testing.T, open Open) {
	p, clock := beginRecord(t, open, "hour=1000/1h")
	clock.Add(2000)
	var ids []throttle.ID
	for i := range int64(throttle.MaxLimit + 5) {
		id := throttle.NewID()
		ids = append(ids, id)
		p.record(id, start+i)
	}
	p.record(throttle.NewID(), start) // older than all that are kept
	h := p.history()
	if len(h) != throttle.MaxLimit || h[0].ID != ids[5] || h[len(h)-1].ID != ids[len(ids)-1] {
		t.Fatalf("%d are kept, from %v to %v", len(h), h[0], h[len(h)-1])
	}
	if v := p.peek(); v.Allowed || v.RetryAt() != start+5+3_600_000 {
		t.Fatalf("until %d: %s", v.RetryAt(), spell(v))
	}
	clock.Set(start + 5 + 3_600_000)
	p.admit()
}

// raceToRecord takes and records at once: all that was recorded is there, once, and of the
// rest no more than there is room for.
func raceToRecord(t *testing.T, open Open) {
	p, _ := beginRecord(t, open, "hour=100/1h")
	for round := range max(2, Length(rounds/50)) {
		p.mailbox = newMailbox(fmt.Sprint("record", round))
		ids := make([]throttle.ID, racers)
		var done sync.WaitGroup
		for i := range ids {
			ids[i] = throttle.NewID()
			done.Go(func() { p.record(ids[i], start-int64(i%7)) })
			done.Go(func() { p.record(ids[i], start-int64(i%7)) })
		}
		admitted := Race(t, p.limiter, p.mailbox, racers)
		done.Wait()
		h := p.history()
		if len(h) != racers+admitted || admitted < 100-racers || admitted > racers {
			t.Fatalf("round %d: %d on record of %d recorded and %d admitted", round, len(h), racers, admitted)
		}
		for i, id := range ids {
			if at := h.Find(id); at < 0 || h[at].At != start-int64(i%7) {
				t.Fatalf("round %d: send %d is not on record at its time", round, i)
			}
		}
	}
}

// record is the model's: at its own time, once, and never ahead of the clock.
func (m *model) record(clock int64, a throttle.Admission) {
	now := m.now(clock)
	a.At = min(a.At, now)
	if m.known(clock, a.ID) || now-a.At >= m.tiers[len(m.tiers)-1].Window {
		return
	}
	m.sends = append(m.live(clock), a)
	slices.SortStableFunc(m.sends, func(a, b throttle.Admission) int { return cmp.Compare(a.At, b.At) })
}

// stepRecord records now, some time ago, at the edge of the longest window or ahead of the
// clock, also what is on record.
func (w *walker) stepRecord() {
	longest, now := w.model.tiers[len(w.model.tiers)-1].Window, w.clock.Now()
	a := throttle.Admission{ID: throttle.NewID(), At: now}
	switch dice := w.random.IntN(10); {
	case dice < 6:
		a.At -= w.random.Int64N(1 + longest)
	case dice < 8:
		a.At -= longest - 1 + w.random.Int64N(3)
	case dice < 9:
		a.At += w.random.Int64N(1000)
	}
	if len(w.ids) > 0 && w.random.IntN(4) == 0 {
		a.ID = w.ids[len(w.ids)-1-w.random.IntN(min(3, len(w.ids)))]
	}
	w.patron.record(a.ID, a.At)
	w.model.record(now, a)
	w.ids = append(w.ids, a.ID)
	w.story = append(w.story, fmt.Sprintf("%d record %v", now, a))
	w.stepHistory()
	w.samePeek("peek")
}
