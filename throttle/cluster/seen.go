package cluster

import (
	"encoding/binary"
	"errors"

	"github.com/mailgate/mailgate/throttle"
)

// seen is what a script saw of a mailbox, and what it did.
type seen struct {
	answer answer
	now    int64
	sends  throttle.History // before this call
}

type answer byte

const (
	admitted       answer = '+'
	admittedBefore answer = '='
	denied         answer = '-'
)

// The lengths of the parts of a reply; scripts/take.lua says what they hold.
const (
	answerBytes = 1
	timeBytes   = 6
	sendBytes   = timeBytes + len(throttle.ID{})
)

var errReply = errors.New("redis holds something under this key that mailgate did not write")

func parseSeen(reply string) (seen, error) {
	if len(reply) < answerBytes+timeBytes || (len(reply)-answerBytes-timeBytes)%sendBytes != 0 {
		return seen{}, errReply
	}
	saw := seen{answer: answer(reply[0]), now: readTime(reply[answerBytes:])}
	if saw.answer != admitted && saw.answer != admittedBefore && saw.answer != denied {
		return seen{}, errReply
	}
	var err error
	saw.sends, err = parseSends(reply[answerBytes+timeBytes:])
	return saw, err
}

func parseSends(members string) (throttle.History, error) {
	sends := make(throttle.History, len(members)/sendBytes)
	for i := range sends {
		send := &sends[i]
		send.At = readTime(members)
		copy(send.ID[:], members[timeBytes:sendBytes])
		if !send.ID.Valid() || i > 0 && send.At < sends[i-1].At {
			return nil, errReply
		}
		members = members[sendBytes:]
	}
	return sends, nil
}

func readTime(s string) int64 {
	return int64(s[0])<<40 | int64(s[1])<<32 | int64(s[2])<<24 | int64(s[3])<<16 | int64(s[4])<<8 | int64(s[5])
}

// packTiers writes a policy as the scripts read it.
func packTiers(p throttle.Policy) string {
	var b []byte
	for _, tier := range p.Tiers() {
		b = binary.BigEndian.AppendUint16(b, uint16(tier.Limit))
		var window [8]byte
		binary.BigEndian.PutUint64(window[:], uint64(tier.Window))
		b = append(b, window[8-timeBytes:]...)
	}
	return string(b)
}
