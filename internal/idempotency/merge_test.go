package idempotency

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// mergeAt merges, and expects that the same again changes nothing.
func mergeAt(shared, own record, now int64) record {
	b, expires := Merge(shared.encode(), own.encode(), now)
	if again, _ := Merge(b, own.encode(), now); !bytes.Equal(again, b) {
		panic(fmt.Sprintf("at %d, shared %v, own %v: %x, and again %x", now, shared, own, b, again))
	}
	r, err := parse(b)
	if err != nil || r.expires != expires {
		panic(fmt.Sprint("merged into ", r, " until ", expires, err))
	}
	return r
}

func TestMerge_TwoRecords_OneHolds(t *testing.T) {
	long := record{state: begun, token: theirs.token, body: mine.body, lease: 1050, expires: 1150}
	const unclaimed = "handed over unclaimed until 1100, lease 1010"
	for _, tt := range []struct {
		shared, own record
		now         int64
		want        string
	}{
		{record{}, record{}, 1005, "none"},
		{record{}, sample(begun, mine), 1005, sample(begun, mine).String()},
		{sample(begun, mine), record{}, 1005, sample(begun, mine).String()},
		{sample(begun, mine), long, 1009, sample(begun, mine).String()},
		{sample(begun, mine), long, 1010, long.String()},
		{sample(begun, mine), long, 1050, sample(begun, mine).String()},
		{sample(begun, mine), sample(handedOver, theirs), 1005, sample(handedOver, theirs).String()},
		{sample(handedOver, mine), long, 1020, sample(handedOver, mine).String()},
		{sample(handedOver, mine), sample(handedOver, theirs), 1005, unclaimed},
		{sample(handedOver, mine), record{handedOver, theirs.token, mine.body, 1050, 1150, nil}, 1005, "handed over unclaimed until 1150, lease 1050"},
		{sample(handedOver, Lease{}), sample(handedOver, theirs), 1005, unclaimed},
		{sample(handedOver, mine), sample(handedOver, Lease{}), 1005, unclaimed},
		{sample(handedOver, Lease{}), sample(abandoned, theirs), 1005, unclaimed},
		{sample(handedOver, mine), sample(abandoned, theirs), 1005, sample(handedOver, mine).String()},
		{sample(handedOver, mine), sample(abandoned, mine), 1005, sample(abandoned, mine).String()},
		{sample(abandoned, mine), sample(handedOver, mine), 1005, sample(abandoned, mine).String()},
		{sample(begun, mine), sample(abandoned, mine), 1005, sample(abandoned, mine).String()},
		{sample(abandoned, mine), sample(begun, theirs), 1005, sample(begun, theirs).String()},
		{sample(begun, mine), sample(abandoned, theirs), 1005, sample(begun, mine).String()},
		{sample(begun, mine), sample(handedOver, mine), 1005, sample(handedOver, mine).String()},
		{sample(handedOver, mine), sample(begun, mine), 1005, sample(handedOver, mine).String()},
		{sample(answered, mine), sample(answered, theirs), 1005, sample(answered, mine).String()},
		{sample(answered, mine), sample(abandoned, mine), 1005, sample(answered, mine).String()},
		{sample(handedOver, mine), sample(answered, theirs), 1005, sample(answered, theirs).String()},
		{sample(abandoned, mine), sample(answered, mine), 1005, sample(answered, mine).String()},
		{sample(answered, mine), sample(handedOver, theirs), 1005, sample(answered, mine).String()},
		{sample(answered, mine), long, 1100, long.String()},
		{long, sample(answered, mine), 1100, long.String()},
	} {
		got := mergeAt(tt.shared, tt.own, tt.now)
		if got.String() != tt.want {
			t.Errorf("at %d, shared %v, own %v:\n got %v\nwant %s", tt.now, tt.shared, tt.own, got, tt.want)
		}
	}
	good, damaged := sample(handedOver, mine).encode(), []byte("damaged")
	if b, expires := Merge(damaged, good, 1005); !bytes.Equal(b, damaged) || expires <= 1005 {
		t.Errorf("a damaged shared record became %x until %d", b, expires)
	}
	if b, expires := Merge(good, damaged, 1005); !bytes.Equal(b, good) || expires != expiresAt {
		t.Errorf("a damaged own record made it %x until %d", b, expires)
	}
}

// world is one key in the shared records and in those of two nodes. Of each it knows which
// hand-overs have reached it, so it sees when one grants a second that it should have
// prevented.
type world struct {
	t        *testing.T
	seed     uint64
	now      int64
	places   [3]record             // 0 is shared
	reached  [3]map[token]bool     // hand-overs that reached the place
	given    map[token]bool        // hand-overs whose attempt was abandoned
	attempts [3]map[token]struct{} // leases that a place granted
	made     byte
}

func (w *world) begin(at int) {
	w.made++
	l := Lease{token: token{w.made}, body: mine.body}
	next, o := w.places[at].begin(l, token{}, w.now, w.now+leaseTime, w.now+keepTime)
	if o.State == leaseEnded && at == 0 { // only the shared records let an attempt be replaced
		next, o = w.places[at].begin(l, o.holder, w.now, w.now+leaseTime, w.now+keepTime)
	}
	if w.places[at] = next; o.State == Started {
		w.attempts[at][l.token] = struct{}{}
	}
}

// act lets an attempt go on: at the shared records, or alone if its lease was granted alone.
func (w *world) act(at int, l Lease, what int) {
	r := w.places[at]
	switch what {
	case 0:
		next, ok := r.handOver(l, w.now, w.now+keepTime)
		if w.places[at] = next; !ok {
			return
		}
		for other := range w.reached[at] {
			if !w.given[other] {
				w.t.Fatalf("seed %d at %d: attempt %d handed over at %d, which knew of %d", w.seed, w.now, l.token[0], at, other[0])
			}
		}
		w.reached[at][l.token] = true
	case 1:
		w.places[at], _ = r.finish(l, []byte("A"), w.now, w.now+keepTime)
	case 2:
		next, freed := r.abandon(l, w.now)
		if w.places[at] = next; freed {
			w.given[l.token] = true
		}
	}
}

// tell merges what a node has made alone, once or twice, and the node then takes over what is
// shared.
func (w *world) tell(from int, mirror bool) {
	w.places[0] = mergeAt(w.places[0], w.places[from], w.now)
	maps.Copy(w.reached[0], w.reached[from])
	if mirror {
		w.places[from] = w.places[0]
		maps.Copy(w.reached[from], w.reached[0])
	}
}

// Random histories of two nodes and the shared records, merged in any order and any number of
// times: no place that a hand-over has reached grants a second one.
func TestMerge_RandomHistories_NoSecondHandOver(t *testing.T) {
	handedOverTwice := 0
	for seed := range uint64(6000) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &world{t: t, seed: seed, now: 1000, given: map[token]bool{}}
		for i := range w.places {
			w.reached[i], w.attempts[i] = map[token]bool{}, map[token]struct{}{}
		}
		for range 60 {
			w.now += random.Int64N(2) // 60 at most, so no hand-over expires
			at := random.IntN(3)
			switch what := random.IntN(8); {
			case what < 2:
				w.begin(at)
			case what < 6 && w.made > 0:
				recent := random.IntN(min(int(w.made), 4))
				l := Lease{token: token{w.made - byte(recent)}, body: mine.body}
				if _, granted := w.attempts[at][l.token]; granted || at == 0 {
					w.act(at, l, [...]int{0, 0, 1, 2}[random.IntN(4)])
				}
			case at > 0:
				w.tell(at, random.IntN(2) == 0)
			}
		}
		if len(w.reached[0]) > 1 {
			handedOverTwice++
		}
	}
	if handedOverTwice < 50 {
		t.Errorf("only %d histories had two hand-overs", handedOverTwice)
	}
}
