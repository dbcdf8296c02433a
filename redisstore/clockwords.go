package redisstore

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrReply is the kind of a reply that no script of ours makes.
var ErrReply = errors.New("redis holds something under this key that mailgate did not write")

// A script that tells the time writes the seconds and right behind them the microseconds,
// as TIME has told them.
const secondsDigits = 10

// ParseClock reads the time that a script has told, as milliseconds.
func ParseClock(text string) (int64, error) {
	if len(text) <= secondsDigits {
		return 0, ErrReply
	}
	seconds, err := strconv.ParseUint(text[:secondsDigits], 10, 63)
	if err != nil {
		return 0, ErrReply
	}
	micros, err := strconv.ParseUint(text[secondsDigits:], 10, 63)
	if err != nil {
		return 0, ErrReply
	}
	return int64(seconds)*1000 + int64(micros)/1000, nil
}

// clockWords hand a test's clock to a script, as TIME would tell it.
func (s *Store) clockWords() []any {
	if s.clock == nil {
		return nil
	}
	now := s.clock()
	return []any{fmt.Sprintf("%0*d", secondsDigits, now/1000), now % 1000 * 1000}
}
