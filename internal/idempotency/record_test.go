package idempotency

import (
	"fmt"
	"testing"
)

const (
	leaseTime = 10
	keepTime  = 100
	leaseEnd  = 1010 // of every record in these tables
	expiresAt = 1100
)

var (
	mine   = Lease{token: token{'m'}, body: Fingerprint{1}}
	theirs = Lease{token: token{'t'}, body: Fingerprint{1}}
)

// String returns a record as one text: the state, whose it is, and what the state has besides.
func (r record) String() string {
	if r.state == none {
		return "none"
	}
	name := [...]string{"none", "abandoned", "begun", "handed over", "answered"}[r.state]
	whose := map[token]string{mine.token: "mine", theirs.token: "theirs", {}: "unclaimed"}[r.token]
	text := fmt.Sprintf("%s %s until %d", name, whose, r.expires)
	if r.state == begun || r.state == handedOver {
		text += fmt.Sprintf(", lease %d", r.lease)
	}
	return text + string(r.answer)
}

// Every transition from every state, of this attempt or another, with the lease in force and
// ended. What each row says: what the call returns, then the record.
func TestRecord_EachTransition_NextState(t *testing.T) {
	const same = "=" // the record does not change
	type results struct{ begin, handOver, finish, abandon string }
	began := func(at int) string { return fmt.Sprintf("begun mine until %d, lease %d", at+keepTime, at+leaseTime) }
	kept := func(at int) string { return fmt.Sprintf("true answered mine until %dX", at+keepTime) }
	for _, tt := range []struct {
		state state
		whose Lease
		now   int64
		want  results
	}{
		{none, Lease{}, 1005, results{"started " + began(1005), "false " + same, kept(1005), "false " + same}},

		{abandoned, mine, 1005, results{"started " + began(1005), "false " + same, kept(1005), "false " + same}},
		{abandoned, theirs, 1005, results{"started " + began(1005), "false " + same, kept(1005), "false " + same}},

		{begun, mine, 1009, results{"in flight " + same, "true handed over mine until 1109, lease 1010", kept(1009), "true abandoned mine until 1010"}},
		{begun, mine, 1010, results{"ended " + same, "false " + same, kept(1010), "true abandoned mine until 1010"}},
		{begun, theirs, 1009, results{"in flight " + same, "false " + same, "false " + same, "false " + same}},
		{begun, theirs, 1010, results{"ended " + same, "false " + same, "false " + same, "false " + same}},

		{handedOver, mine, 1009, results{"in flight " + same, "false " + same, kept(1009), "true abandoned mine until 1100"}},
		{handedOver, mine, 1010, results{"unknown " + same, "false " + same, kept(1010), "true abandoned mine until 1100"}},
		{handedOver, theirs, 1009, results{"in flight " + same, "false " + same, "false " + same, "false " + same}},
		{handedOver, theirs, 1010, results{"unknown " + same, "false " + same, "false " + same, "false " + same}},
		{handedOver, Lease{}, 1009, results{"in flight " + same, "false " + same, kept(1009), "false " + same}},
		{handedOver, Lease{}, 1010, results{"unknown " + same, "false " + same, kept(1010), "false " + same}},

		{answered, mine, 1009, results{"replay " + same, "false " + same, "true " + same, "false " + same}},
		{answered, mine, 1099, results{"replay " + same, "false " + same, "true " + same, "false " + same}},
		{answered, theirs, 1009, results{"replay " + same, "false " + same, "false " + same, "false " + same}},
		{answered, theirs, 1099, results{"replay " + same, "false " + same, "false " + same, "false " + same}},

		// Expired, each is none.
		{abandoned, theirs, 1100, results{"started " + began(1100), "false none", kept(1100), "false none"}},
		{begun, mine, 1100, results{"started " + began(1100), "false none", kept(1100), "false none"}},
		{handedOver, theirs, 1100, results{"started " + began(1100), "false none", kept(1100), "false none"}},
		{answered, theirs, 1100, results{"started " + began(1100), "false none", kept(1100), "false none"}},
	} {
		r := sample(tt.state, tt.whose)
		check := func(transition, returned string, next record, want string) {
			t.Helper()
			after := next.String()
			if after == r.String() {
				after = same
			}
			if got := returned + " " + after; got != want {
				t.Errorf("%s on %v at %d:\n got %s\nwant %s", transition, r, tt.now, got, want)
			}
		}
		next, o := r.begin(mine, token{}, tt.now, tt.now+leaseTime, tt.now+keepTime)
		check("begin", outcome(o), next, tt.want.begin)
		next, ok := r.handOver(mine, tt.now, tt.now+keepTime)
		check("handOver", fmt.Sprint(ok), next, tt.want.handOver)
		next, ok = r.finish(mine, []byte("X"), tt.now, tt.now+keepTime)
		check("finish", fmt.Sprint(ok), next, tt.want.finish)
		next, ok = r.abandon(mine, tt.now)
		check("abandon", fmt.Sprint(ok), next, tt.want.abandon)
	}
}

// sample is a record that was made at 1000.
func sample(s state, whose Lease) record {
	if s == none {
		return record{}
	}
	r := record{state: s, token: whose.token, body: mine.body, expires: expiresAt}
	switch s {
	case begun, handedOver:
		r.lease = leaseEnd
	case answered:
		r.answer = []byte("A")
	}
	return r
}

func outcome(o Outcome) string {
	return [...]string{"in flight", "started", "replay", "mismatch", "unknown", "ended"}[o.State]
}

func TestRecord_AnotherBody_Mismatch(t *testing.T) {
	other := Lease{token: token{'o'}, body: Fingerprint{2}}
	for _, tt := range []struct {
		state state
		now   int64
		want  State
	}{
		{abandoned, 1005, Started},
		{begun, leaseEnd - 1, Mismatch}, {begun, leaseEnd, leaseEnded},
		{handedOver, leaseEnd - 1, Mismatch}, {handedOver, leaseEnd, Mismatch},
		{answered, leaseEnd, Mismatch},
	} {
		if _, o := sample(tt.state, mine).begin(other, token{}, tt.now, 0, 0); o.State != tt.want {
			t.Errorf("%v at %d: %s", sample(tt.state, mine), tt.now, outcome(o))
		}
	}
}

// An attempt is replaced only by one that names it, and names what it may have charged.
func TestRecord_Begin_ReplacesEndedAttempt(t *testing.T) {
	r := sample(begun, theirs)
	if next, o := r.begin(mine, theirs.token, leaseEnd, 2000, 3000); o.State != Started || o.Previous != theirs.AdmissionID() || next.token != mine.token {
		t.Errorf("%s, previous %s, %v", outcome(o), o.Previous, next)
	}
	for over, now := range map[token]int64{{'o'}: leaseEnd, theirs.token: leaseEnd - 1} {
		if next, o := r.begin(mine, over, now, 2000, 3000); o.State == Started || next.String() != r.String() {
			t.Errorf("over %q at %d: %s, %v", over[:1], now, outcome(o), next)
		}
	}
}
