package throttletest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// beginMeterRecord is beginMeter at a limiter that is a Recorder; the others are passed over.
func beginMeterRecord(t *testing.T, open OpenMeter, algorithm string) *twin {
	t.Helper()
	w := beginMeter(t, open, algorithm)
	if _, ok := w.recorder(); !ok {
		t.Skip("this limiter records nothing from elsewhere")
	}
	return w
}

// record puts a send on record at the limiter and its model, and compares what they say.
func (w *twin) record(id throttle.ID, at int64) {
	w.t.Helper()
	now := w.clock.Now()
	w.patron.record(id, at)
	w.naive.record(now, id, at)
	w.story = append(w.story, told{now, fmt.Sprint("record as of ", at), id, nil})
	w.peek()
}

// meteredRecordInAnyOrder records what two have admitted alone in one order and in another, in
// between sends, and each agrees with the model; of a window and of what fits it is the same.
func meteredRecordInAnyOrder(t *testing.T, open OpenMeter, algorithm string) {
	here := beginMeterRecord(t, open, algorithm)
	other := *here
	other.mailbox, other.naive = newMailbox("other"), other.model()
	sent, clock := throttle.History{}, here.clock
	for range 2 {
		for range 2 {
			sent = append(sent, throttle.Admission{ID: throttle.NewID(), At: clock.Now()})
			clock.Add(9000)
		}
		clock.Add(-17_000)
	}
	clock.Add(30_000)
	for i, a := range sent {
		here.record(a.ID, a.At)
		last := sent[len(sent)-1-i]
		other.record(last.ID, last.At)
	}
	if got, want := answerOf(other.peek()), answerOf(here.peek()); got != want {
		t.Fatalf("\n got %v\nwant %v", got, want)
	}
	for _, w := range []*twin{here, &other} {
		w.admit()
		clock.Add(1)
		w.record(throttle.NewID(), sent[1].At+1)
		w.record(sent[1].ID, sent[1].At)
		w.release(sent[2].ID)
		w.record(sent[0].ID, clock.Now())
	}
}

// meteredRecordInOrder plays into one key what was admitted on another, and they are
// equal, however long ago it was.
func meteredRecordInOrder(t *testing.T, open OpenMeter, algorithm string) {
	for _, late := range []int64{0, 1000, 20_000, 59_000, 3_000_000} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			elsewhere := beginMeterRecord(t, open, algorithm)
			here := *elsewhere
			here.mailbox, here.naive = newMailbox("here"), here.model()
			sent := elsewhere.sendForAWhile()
			elsewhere.clock.Add(late)
			for _, a := range sent {
				here.record(a.ID, a.At)
			}
			if got, want := answerOf(here.peek()), answerOf(elsewhere.peek()); got != want {
				t.Fatalf("\n got %v\nwant %v", got, want)
			}
			if late < 1000 && !here.release(sent[len(sent)-1].ID) {
				t.Fatal("what was recorded was not given back")
			}
		})
	}
}

// sendForAWhile takes faster than the limit lets it, and returns what was admitted.
func (w *twin) sendForAWhile() (sent throttle.History) {
	for range 30 {
		id := throttle.NewID()
		if w.take(id).Allowed {
			sent = append(sent, throttle.Admission{ID: id, At: w.clock.Now()})
		}
		w.clock.Add(1300)
	}
	return sent
}

// meteredRecordIsIdempotent by the id, as far as that is remembered.
func meteredRecordIsIdempotent(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeterRecord(t, open, algorithm)
	taken, recorded := w.admit(), throttle.NewID()
	w.clock.Add(10)
	for range 3 {
		w.record(taken, w.clock.Now())
		w.record(recorded, w.clock.Now()-5)
		w.record(recorded, w.clock.Now())
	}
	if !w.take(recorded).Allowed {
		t.Fatal("what was recorded is denied when it is taken")
	}
	if n := w.reset(); n != 2 {
		t.Fatalf("two sends, recorded three times each, are %d", n)
	}
	w.record(recorded, w.clock.Now())
	if !w.release(recorded) || w.release(recorded) {
		t.Fatal("what was recorded was not given back, or twice")
	}
}

// meteredRecordWhatWillNotDo: too old, before all time, ahead of the clock, and where all
// is full.
func meteredRecordWhatWillNotDo(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeterRecord(t, open, algorithm)
	now := w.clock.Now()
	for _, at := range []int64{now - 10*w.tier.Window, 0, -1, -1 << 63} {
		w.record(throttle.NewID(), at)
	}
	if left := w.peek().Tiers()[0].Remaining; left != w.room() {
		t.Fatalf("%d of %d left after what is too old was recorded", left, w.room())
	}
	w.reset()
	for _, ahead := range []int64{1, w.tier.Window, 1 << 60} {
		w.record(throttle.NewID(), now+ahead)
	}
	if left := w.peek().Tiers()[0].Remaining; left != w.room()-3 {
		t.Fatalf("%d of %d left: what is ahead of the clock counts as the clock", left, w.room())
	}
	for range 2 * w.room() {
		w.record(throttle.NewID(), now)
	}
	most := 3 + 2*w.room() // of a window, whatever the limit
	if algorithm == tokenBucket || algorithm == leakyBucket {
		most = w.room()
	}
	if n := w.reset(); n != most {
		t.Fatalf("%d count, want %d", n, most)
	}
	// An older send than the newest on record counts as of its own time.
	w.admit()
	for _, ago := range []int64{1, w.tier.Window / 100, w.tier.Window / 10, 2} {
		w.record(throttle.NewID(), now-ago)
	}
}

// raceToRecordMetered records at once, each send twice: all are counted once.
func raceToRecordMetered(t *testing.T, open OpenMeter, algorithm string) {
	n := usualNumbers(algorithm)
	n.tier.Limit, n.extra = 2*racers, map[string]int{slidingWindow: 60, tokenBucket: 2 * racers, leakyBucket: 2*racers - 1}[algorithm]
	for range max(2, Length(5)) {
		w := newTwin(t, open, clocktest.New(start+20_500), n)
		if _, ok := w.recorder(); !ok {
			t.Skip("this limiter records nothing from elsewhere")
		}
		var done sync.WaitGroup
		for range racers {
			id := throttle.NewID()
			done.Go(func() { w.patron.record(id, start+20_500) })
			done.Go(func() { w.patron.record(id, start+20_500) })
		}
		admitted := Race(t, w.limiter, w.mailbox, racers)
		done.Wait()
		if cleared := w.patron.reset(); admitted != racers || cleared != 2*racers {
			t.Fatalf("%d admitted and %d recorded are %d", admitted, racers, cleared)
		}
	}
}

// stepRecord records some time ago. A store need not have kept what counts no more, so
// that has to go first.
func (w *stroller) stepRecord() {
	now := w.clock.Now()
	if w.naive.way.used(w.naive.counting(now), w.naive.clock(now)) == 0 {
		w.reset()
	}
	at := now
	if w.random.IntN(3) > 0 {
		at += 2 - w.random.Int64N(3+w.tier.Window)
	}
	id := throttle.NewID()
	w.ids = append(w.ids, id)
	w.record(id, at)
	w.again(3, func(id throttle.ID) { w.record(id, at) })
}
