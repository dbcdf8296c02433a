package throttletest

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/throttle"
)

// beginMeter is a key at a limiter of the usual numbers, in the middle of a window.
func beginMeter(t testing.TB, open OpenMeter, algorithm string) *twin {
	t.Helper()
	return newTwin(t, open, clocktest.New(start+20_500), usualNumbers(algorithm))
}

// firstMetered also holds the models to what is written down here.
func firstMetered(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	full := map[string]string{
		fixedWindow:   "no minute 39500 [minute 0 39500]",
		slidingWindow: "no minute 60499 [minute 0 60499]",
		tokenBucket:   "no minute 8572 [minute 0 8572]",
		leakyBucket:   "no minute 8572 [minute 0 8572]",
	}
	expect(t, w.peek(), "yes  0 [minute 5 0]")
	expect(t, w.take(throttle.NewID()), "yes  0 [minute 4 0]")
	for range w.room() - 1 {
		w.admit()
	}
	expect(t, w.take(throttle.NewID()), full[algorithm])
	expect(t, w.peek(), full[algorithm])
}

func meteredDenialChangesNothing(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	w.fill()
	now, before := w.clock.Now(), w.peek()
	for i := range int64(200) {
		w.clock.Set(now + i*41)
		if v := w.deny(); v.RetryAt() != before.RetryAt() {
			t.Fatalf("denied %d times, the moment to retry went from %d to %d", i, before.RetryAt(), v.RetryAt())
		}
	}
	w.clock.Set(now)
	if after := w.peek(); answerOf(after) != answerOf(before) {
		t.Fatalf("denials changed the answer\nfrom %v\n  to %v", answerOf(before), answerOf(after))
	}
	w.clock.Set(before.RetryAt())
	w.admit()
}

func meteredEdges(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	w.fill()
	for i := range int64(40) {
		until := w.deny().RetryAt()
		w.clock.Set(until - 1)
		if v := w.deny(); v.Wait != 1 {
			t.Fatalf("one millisecond before the end of the wait: %v", answerOf(v))
		}
		w.clock.Set(until)
		if v := w.peek(); !v.Allowed || v.Wait != 0 {
			t.Fatalf("peek at the end of the wait: %v", answerOf(v))
		}
		for w.take(throttle.NewID()).Allowed {
			w.clock.Add(i)
		}
	}
}

func meteredTakeIsIdempotent(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	id := throttle.NewID()
	first := w.take(id)
	if again := w.take(id); answerOf(again) != answerOf(first) {
		t.Fatalf("taken again: %v, at first %v", answerOf(again), answerOf(first))
	}
	w.clock.Add(1000)
	w.admit()
	w.take(id)
	if n := w.reset(); n != 2 {
		t.Fatalf("two sends, one of them taken three times, are %d", n)
	}
	ids := w.fill()
	for _, id := range ids {
		if !w.take(id).Allowed {
			t.Fatal("full, and an id that is on record is denied")
		}
	}
	// A denied id was never on record: it is decided anew.
	denied := throttle.NewID()
	w.clock.Set(w.take(denied).RetryAt())
	if !w.take(denied).Allowed {
		t.Fatal("an id that was denied before is not decided anew")
	}
	// What counts no more is forgotten, and its id with it.
	w.clock.Add(10 * w.tier.Window)
	w.take(ids[0])
	if n := w.reset(); n != 1 {
		t.Fatalf("an id long forgotten was charged %d times", n)
	}
}

// meteredRelease gives back the last, any other, and all in either order.
func meteredRelease(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	first := w.admit()
	w.clock.Add(700)
	before := w.peek()
	last := w.admit()
	if w.release(throttle.NewID()) {
		t.Fatal("released an id that was never admitted")
	}
	if !w.release(last) || w.release(last) {
		t.Fatal("the last admission was not given back, or twice")
	}
	if after := w.peek(); answerOf(after) != answerOf(before) {
		t.Fatalf("not as if it had never been there\n got %v\nwant %v", answerOf(after), answerOf(before))
	}
	last = w.admit()
	if !w.release(first) || w.release(first) {
		t.Fatal("the one before the last was not given back, or twice")
	}
	if w.release(throttle.ID{}) {
		t.Fatal("gave back what has no id")
	}
	if !w.release(last) {
		t.Fatal("the last admission was not given back")
	}
	for _, oldestFirst := range []bool{false, true} {
		ids := w.fill()
		for i := range ids {
			if !oldestFirst {
				i = len(ids) - 1 - i
			}
			if !w.release(ids[i]) || w.release(ids[i]) {
				t.Fatal("an admission was not given back, or twice")
			}
		}
		if n := w.reset(); n != 0 {
			t.Fatalf("all are given back, and %d count", n)
		}
	}
	w.fill()
}

// meteredReleaseOfWhatIsGone gives back what counts no more.
func meteredReleaseOfWhatIsGone(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	id := w.admit()
	w.clock.Add(2 * w.tier.Window)
	if w.release(id) {
		t.Fatal("gave back what counts no more")
	}
	w.admit()
	if w.release(id) {
		t.Fatal("gave back what is forgotten")
	}
}

func meteredReset(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	if n := w.reset(); n != 0 {
		t.Fatalf("reset of an unknown key cleared %d", n)
	}
	for i := range w.room() {
		for range i + 1 {
			w.admit()
		}
		if n := w.reset(); n != i+1 {
			t.Fatalf("reset cleared %d, want %d", n, i+1)
		}
	}
	w.fill()
	w.clock.Add(3 * w.tier.Window)
	if n := w.reset(); n != 0 {
		t.Fatalf("reset cleared %d that counted no more", n)
	}
	w.fill()
}

func meteredKeysAreApart(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	w.fill()
	for _, other := range []string{w.mailbox + " ", strings.ToUpper(w.mailbox), w.mailbox[1:], w.mailbox + "\x00", "{" + w.mailbox + "}", "/" + w.mailbox, "*"} {
		q := *w
		q.mailbox, q.naive = other+newMailbox("apart"), w.model()
		q.admit()
		if n := q.reset(); n != 1 {
			t.Fatalf("reset of key %q cleared %d", q.mailbox, n)
		}
	}
	w.deny()
}

func meteredClockStepsBack(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	w.fill()
	until := w.peek().RetryAt()
	for _, back := range []int64{1, 999, w.tier.Window, 1000 * w.tier.Window} {
		w.clock.Set(start + 20_500 - back)
		// What it says of the moment stays true: no window reopens, and none grows.
		if v := w.deny(); v.RetryAt() != until || v.Now != w.clock.Now() {
			t.Fatalf("%d ms back: %v, want until %d", back, answerOf(v), until)
		}
	}
	w.clock.Set(until - 1)
	w.deny()
	w.clock.Set(until)
	w.admit()
	// One that is admitted while the clock is behind counts from what is on record.
	w.reset()
	w.admit()
	w.clock.Set(start)
	for range w.room() - 1 {
		w.admit()
	}
	if again := w.deny().RetryAt(); again < until {
		t.Fatalf("admitted behind the newest send, they count until %d only, before %d", again, until)
	}
}

// turnsInTheQueue are at even distances, however the sends came.
func turnsInTheQueue(t *testing.T, open OpenMeter, _ string) {
	w := beginMeter(t, open, leakyBucket)
	for i, want := range []int64{0, 8572, 17_143, 25_715, 34_286} {
		if v := w.take(throttle.NewID()); v.Delay != want {
			t.Fatalf("send %d of a burst waits %d ms for its turn, want %d", i, v.Delay, want)
		}
	}
	w.deny()
	// One comes when it may, and finds the others before it.
	w.clock.Set(w.peek().RetryAt())
	if v := w.peek(); v.Delay != 42_858-8572 {
		t.Fatalf("the next would wait %d ms", v.Delay)
	}
	id := throttle.NewID()
	w.take(id)
	w.clock.Add(10_000)
	if v := w.take(id); v.Delay != 42_858-8572-10_000 {
		t.Fatalf("asked again ten seconds later, it waits %d ms", v.Delay)
	}
	w.clock.Set(start - 1000)
	if v := w.take(id); v.Delay != 42_858-8572 {
		t.Fatalf("asked again by a clock that stepped back, it waits %d ms", v.Delay)
	}
}

// vacantPlaces are those of sends that were given back from the middle of a queue: all
// others have the turns that they were told, and with the last they are free.
func vacantPlaces(t *testing.T, open OpenMeter, _ string) {
	w := beginMeter(t, open, leakyBucket)
	ids := w.fill()
	turns := map[throttle.ID]int64{}
	for _, id := range ids {
		turns[id] = w.take(id).Delay
	}
	for _, i := range []int{2, 1, 3} {
		if !w.release(ids[i]) || w.release(ids[i]) {
			t.Fatalf("send %d was not given back, or twice", i)
		}
		w.deny()
		for _, other := range []int{0, 4} {
			if v := w.take(ids[other]); v.Delay != turns[ids[other]] {
				t.Fatalf("send %d was told a turn in %d ms, and then in %d", other, turns[ids[other]], v.Delay)
			}
		}
	}
	w.release(ids[4])
	if v := w.peek(); v.Tiers()[0].Remaining != 4 || v.Delay != 8572 {
		t.Fatalf("with all but the first given back: %v", answerOf(v))
	}
	if v := w.take(ids[2]); v.Delay != 8572 {
		t.Fatalf("one that was given back comes again: %v", answerOf(v))
	}
}

func meteredContext(t *testing.T, open OpenMeter, algorithm string) {
	w := beginMeter(t, open, algorithm)
	w.endedContext()
	if n := w.reset(); n != 0 {
		t.Fatalf("%d sends recorded after the context had ended", n)
	}
}

func meteredArguments(t *testing.T, open OpenMeter, algorithm string) {
	beginMeter(t, open, algorithm).badArguments()
}
