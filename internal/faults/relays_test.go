package faults_test

import (
	"bytes"
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"sync"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
)

// A received is what the relays have received, collected as it comes.
type received struct {
	mu    sync.Mutex
	mails []judge.Mail
	codes map[string]mailed // by mailbox, the newest
	wrong []judge.Violation
}

// A mailed is a code, and the address that it proves.
type mailed struct{ code, to string }

// startRelays starts the relay that has the faults, and where the seed says so another behind it.
func (s *rig) startRelays() (urls []string) {
	s.received.codes = map[string]mailed{}
	for range 1 + s.rng.IntN(3)/2 {
		relay := fault.Run(s.t, fault.Script{})
		s.relays = append(s.relays, relay)
		urls = append(urls, relay.URL())
	}
	return urls
}

// collect takes in what has come since the last time.
func (s *rig) collect() {
	for _, relay := range s.relays {
		for _, m := range relay.Collect() {
			s.receive(m)
		}
	}
}

// ours is how mailgate shows a code that it made, alone in its line.
var ours = regexp.MustCompile(`(?m)^ +([0-9]{6})\r?$`)

func (s *rig) receive(m fault.Mail) {
	message, err := mail.ReadMessage(bytes.NewReader(m.Text))
	s.received.mu.Lock()
	defer s.received.mu.Unlock()
	if err != nil {
		s.received.wrong = append(s.received.wrong, judge.Violation{Rule: "mails", What: fmt.Sprintf("an email cannot be read: %v", err)})
		return
	}
	one := judge.Mail{At: m.ReceivedMS, Refused: m.Refused, Mailbox: mailboxOf(m.To)}
	one.ID, _, _ = strings.Cut(strings.TrimPrefix(message.Header.Get("Message-Id"), "<"), ".")
	if dated, err := message.Header.Date(); err == nil {
		one.Dated = dated.UnixMilli()
	}
	if code := ours.FindSubmatch(m.Text); code != nil {
		one.Code = string(code[1])
		s.received.codes[one.Mailbox] = mailed{one.Code, m.To}
		s.load.hide(one.Code)
	}
	s.received.mails = append(s.received.mails, one)
}

// mailboxOf undoes spelled.
func mailboxOf(address string) string {
	local, _, _ := strings.Cut(strings.ToLower(address), "@")
	local, _, _ = strings.Cut(local, "+")
	return local
}

func (s *rig) codeOf(mailbox string) (mailed, bool) {
	s.received.mu.Lock()
	defer s.received.mu.Unlock()
	m, ok := s.received.codes[mailbox]
	return m, ok
}
