package cluster

import (
	"cmp"
	"slices"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/throttle"
)

// seen is what a script saw of a key, and what it did.
type seen struct {
	answer answer
	now    int64
	head   string           // of the state of a meter; readState says more
	sends  throttle.History // before this call
}

type answer int

const (
	denied answer = iota
	admitted
	admittedBefore
	tooLate
)

// The lengths of the parts of a reply; scripts/take.lua says what they hold.
const (
	sendTimeBytes = 6
	sendBytes     = sendTimeBytes + len(throttle.ID{})
	secondsBytes  = 10
	leastClock    = secondsBytes + 1 // the shortest is the whole second
	mostTail      = secondsBytes + 6 + len("+")
)

// readHistory reads what scripts/take.lua and its like return.
func readHistory(reply string) (seen, error) {
	saw, err := readSeen(reply)
	inOrder := slices.IsSortedFunc(saw.sends, func(a, b throttle.Admission) int { return cmp.Compare(a.At, b.At) })
	if err != nil || !inOrder || slices.ContainsFunc(saw.sends, vacant) {
		return seen{}, redisstore.ErrReply
	}
	return saw, nil
}

// vacant reports whether a send was given back and keeps its place, as it does in a queue.
func vacant(send throttle.Admission) bool { return send.ID == throttle.ID{} }

// readState reads what scripts/meter_begin.lua and scripts/meter_admit.lua return.
func readState(reply string) (seen, error) {
	const (
		size = 2       // bytes that say how long the head is
		long = 1 << 15 // is in them where the state is long, and makes no difference to a head
	)
	if len(reply) < size {
		return seen{}, redisstore.ErrReply
	}
	end := size + int(redisstore.BigEndian(reply[:size])&^long)
	if len(reply) < end {
		return seen{}, redisstore.ErrReply
	}
	saw, err := readSeen(reply[end:])
	saw.head = reply[size:end]
	return saw, err
}

// readSeen reads sends, the clock and the answer.
func readSeen(reply string) (saw seen, err error) {
	if len(reply) < leastClock {
		return seen{}, redisstore.ErrReply
	}
	// What follows the sends is shorter than two sends, so their number is certain.
	count := (len(reply) - leastClock) / sendBytes
	members, clock := reply[:count*sendBytes], reply[count*sendBytes:]
	if len(clock) > mostTail {
		return seen{}, redisstore.ErrReply
	}
	clock, saw.answer = cutAnswer(clock)
	if saw.now, err = redisstore.ParseClock(clock); err != nil {
		return seen{}, err
	}
	saw.sends, err = parseSends(members)
	return saw, err
}

func cutAnswer(text string) (string, answer) {
	switch last := len(text) - 1; text[last] {
	case '+':
		return text[:last], admitted
	case '=':
		return text[:last], admittedBefore
	case '!':
		return text[:last], tooLate
	}
	return text, denied
}

func parseSends(members string) (throttle.History, error) {
	sends := make(throttle.History, len(members)/sendBytes)
	for i := range sends {
		send := &sends[i]
		send.At = redisstore.BigEndian(members[:sendTimeBytes])
		copy(send.ID[:], members[sendTimeBytes:sendBytes])
		if !send.ID.Valid() && !vacant(*send) {
			return nil, redisstore.ErrReply
		}
		members = members[sendBytes:]
	}
	return sends, nil
}
