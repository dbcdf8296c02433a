package cluster

import (
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A layout is how the scripts count as one meter does: which they are, the limits as
// they read them, and how they write the head of a state.
type layout struct {
	take    script
	record  script // as many as are to be put on record
	release *redisstore.Script
	numbers any // a string, in an interface once rather than at every call
	parse   func(seen) (meter.State, error)
}

// layoutOf finds the layout of package meter's own meters.
func layoutOf(m meter.Meter) (layout, bool) {
	tier := m.Tier()
	window, limit := number{tier.Window, 6}, number{int64(tier.Limit), 4}
	switch m := m.(type) {
	case meter.FixedWindow:
		return layout{fixedTakeScript, fixedRecordScript, fixedReleaseScript, pack(window, limit, number{int64(m.Held()), 2}), parseFixed}, true
	case meter.SlidingWindow:
		return layout{slidingTakeScript, slidingRecordScript, slidingReleaseScript,
			pack(window, number{m.Part(), 6}, limit, number{int64(m.Held()), 2}), parseSliding}, true
	case meter.TokenBucket:
		return layout{bucketTakeScript, bucketRecordScript, bucketReleaseScript,
			pack(window, limit, number{int64(m.Room()), 4}, number{int64(m.Held()), 2}, number{0, 1}), parseBucket}, true
	case meter.LeakyBucket:
		return layout{bucketTakeScript, bucketRecordScript, bucketReleaseScript,
			pack(window, limit, number{int64(m.Room()), 4}, number{int64(m.Held()), 2}, number{1, 1}), parseBucket}, true
	}
	return layout{}, false
}

// state is the state that a script saw. Its admissions are in it only where one of them
// is the answer: all else that a verdict depends on is in the head.
func (l layout) state(saw seen) (meter.State, error) {
	if saw.head == "" {
		return meter.State{}, nil
	}
	return l.parse(saw)
}

func parseFixed(saw seen) (meter.State, error) {
	if len(saw.head) != 10 {
		return meter.State{}, redisstore.ErrReply
	}
	return meter.State{At: redisstore.BigEndian(saw.head[:6]), Count: redisstore.BigEndian(saw.head[6:]), Held: saw.sends}, nil
}

func parseSliding(saw seen) (meter.State, error) {
	head := saw.head
	if len(head) < 14 || len(head)%4 != 2 {
		return meter.State{}, redisstore.ErrReply
	}
	s := meter.State{At: redisstore.BigEndian(head[:6]), Count: redisstore.BigEndian(head[6:10]), Held: saw.sends}
	s.Parts = make([]int64, 0, len(head)/4)
	sum := int64(0)
	for head = head[10:]; head != ""; head = head[4:] {
		part := redisstore.BigEndian(head[:4])
		s.Parts = append(s.Parts, part)
		sum += part
	}
	if sum != s.Count {
		return meter.State{}, redisstore.ErrReply
	}
	return s, nil
}

func parseBucket(saw seen) (meter.State, error) {
	head := saw.head
	if len(head) != 26 {
		return meter.State{}, redisstore.ErrReply
	}
	s := meter.State{At: redisstore.BigEndian(head[:6]), Count: redisstore.BigEndian(head[6:13]), Held: saw.sends}
	if len(s.Held) == 0 {
		s.Parts = []int64{s.At, s.Count} // nothing came after what was in it
	} else {
		s.Parts = []int64{redisstore.BigEndian(head[13:19]), redisstore.BigEndian(head[19:])}
	}
	return s, nil
}

// A number is one that a script reads, in so many bytes.
type number struct {
	value int64
	bytes int
}

// pack writes numbers one behind the other, big-endian.
func pack(numbers ...number) string {
	var text []byte
	for _, n := range numbers {
		for i := n.bytes - 1; i >= 0; i-- {
			text = append(text, byte(n.value>>(8*i)))
		}
	}
	return string(text)
}

// packTiers writes a policy as the scripts read it.
func packTiers(p throttle.Policy) string {
	var numbers []number
	for _, tier := range p.Tiers() {
		numbers = append(numbers, number{int64(tier.Limit), 2}, number{tier.Window, sendTimeBytes})
	}
	return pack(numbers...)
}
