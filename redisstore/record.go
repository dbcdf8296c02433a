package redisstore

import (
	_ "embed"
	"strings"
)

//go:embed record.lua
var recordSource string

// NewRecordScript makes a script that keeps a record as one string, and replies with an
// [Answer]. The source goes on where record.lua ends, which says what it finds there. The
// letters in written are the answers that replicas must confirm.
func NewRecordScript(source, written string) *Script {
	return NewScript(recordSource+source, func(reply string) bool {
		return reply != "" && strings.IndexByte(written, reply[0]) >= 0
	})
}

// An Answer is what such a script replies.
type Answer struct {
	Letter byte
	Now    int64  // the server's clock
	More   string // what belongs to the letter
}

// The letters with which a script has done nothing.
const (
	tooLate = '!'
	foreign = '?'
)

// answerHead is the length of the letter and the clock.
const answerHead = 1 + 6

// ParseAnswer reads a reply. That the record is none of ours is ErrReply.
func ParseAnswer(reply string) (Answer, error) {
	if len(reply) < answerHead || reply[0] == foreign {
		return Answer{}, ErrReply
	}
	return Answer{Letter: reply[0], Now: BigEndian(reply[1:answerHead]), More: reply[answerHead:]}, nil
}

// BigEndian reads a number of up to 7 bytes, as record.lua writes them.
func BigEndian(text string) (n int64) {
	for i := range len(text) {
		n = n<<8 | int64(text[i])
	}
	return n
}

// Change has a script of NewRecordScript decide on what becomes of the record, as Decide
// does. What and with are its own two words.
func (c Call) Change(script *Script, what, with any) (a Answer, err error) {
	err = c.Decide(script, func(reply string) (now int64, late bool, err error) {
		a, err = ParseAnswer(reply)
		return a.Now, a.Letter == tooLate, err
	}, what, with)
	if err != nil {
		return Answer{}, err
	}
	return a, nil
}

// ChangeLate is Change for what is right to be done however late it comes.
func (c Call) ChangeLate(script *Script, what, with any) (Answer, error) {
	reply, err := c.Ask(script, what, with, "")
	if err != nil {
		return Answer{}, err
	}
	return ParseAnswer(reply)
}
