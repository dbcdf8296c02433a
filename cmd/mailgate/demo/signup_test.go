package demo

import (
	"fmt"
	"testing"
)

// A code is good until it is too old, and is forgotten when it is.
func TestCodesExpire(t *testing.T) {
	now := int64(1_000)
	s := &signUp{now: func() int64 { return now }, pending: map[string]pending{}}
	s.remember("Alice@example.com", "123456")
	now += codeLife - 1
	if right, left := s.spend("alice@example.com", "000000"); right || left != maxGuesses-1 {
		t.Errorf("a wrong guess: %v, %d left", right, left)
	}
	now++
	if right, _ := s.spend("alice@example.com", "123456"); right {
		t.Error("an old code works")
	}
	s.remember("bob@example.com", "654321")
	if len(s.pending) != 1 {
		t.Errorf("%d codes are kept", len(s.pending))
	}
	if right, _ := s.spend(" BOB@example.com ", " 654321 "); !right {
		t.Error("a code does not work")
	}
}

// However many sign up and never come back, what is kept stays small.
func TestPendingIsBounded(t *testing.T) {
	s := &signUp{now: func() int64 { return 1 }, pending: map[string]pending{}}
	for i := range 3 * maxPending {
		s.remember(fmt.Sprintf("user%d@example.com", i), "123456")
	}
	if len(s.pending) > maxPending {
		t.Errorf("%d codes are kept", len(s.pending))
	}
	if right, _ := s.spend(fmt.Sprintf("user%d@example.com", 3*maxPending-1), "123456"); !right {
		t.Error("the newest code was dropped")
	}
}
