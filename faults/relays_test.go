package faults_test

import (
	"bytes"
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"sync"

	"github.com/mailgate/mailgate/faults/judge"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// A relays is what the relays have received, collected as it comes.
type relays struct {
	first *fault.Server
	spare *sandbox.Server // nil: there is none

	mu        sync.Mutex
	mails     []judge.Mail
	codes     map[string]mailed // by mailbox, the newest
	everyCode map[string]bool
	seen      uint64 // the newest email of the spare relay
	wrong     []judge.Violation
}

// A mailed is a code, and the address that it proves.
type mailed struct{ code, to string }

// collect takes in what has come since the last time.
func (p *relays) collect() {
	for _, m := range p.first.Collect() {
		p.take(m.To, m.Text, judge.Mail{At: m.ReceivedMS, Refused: m.Refused})
	}
	if p.spare == nil {
		return
	}
	for _, m := range p.spare.List() {
		if m.ID > p.seen {
			p.seen = m.ID
			p.take(m.To[0], m.Raw, judge.Mail{At: m.ReceivedMS})
		}
	}
}

// ours is how mailgate shows a code that it made, alone in its line.
var ours = regexp.MustCompile(`(?m)^ +([0-9]{6})\r?$`)

func (p *relays) take(to string, text []byte, m judge.Mail) {
	message, err := mail.ReadMessage(bytes.NewReader(text))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.wrong = append(p.wrong, judge.Violation{Rule: "mails", What: fmt.Sprintf("an email cannot be read: %v", err)})
		return
	}
	m.Mailbox = mailboxOf(to)
	m.ID, _, _ = strings.Cut(strings.TrimPrefix(message.Header.Get("Message-Id"), "<"), ".")
	if dated, err := message.Header.Date(); err == nil {
		m.Dated = dated.UnixMilli()
	}
	if code := ours.FindSubmatch(text); code != nil {
		m.Code = string(code[1])
		p.codes[m.Mailbox], p.everyCode[m.Code] = mailed{m.Code, to}, true
	}
	p.mails = append(p.mails, m)
}

// mailboxOf undoes spelled.
func mailboxOf(address string) string {
	local, _, _ := strings.Cut(strings.ToLower(address), "@")
	local, _, _ = strings.Cut(local, "+")
	return local
}

func (p *relays) codeOf(mailbox string) (mailed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.codes[mailbox]
	return m, ok
}
