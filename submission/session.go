package submission

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// noLimit is for a client that may take any time.
var noLimit time.Time

// template is what rules by template count emails of this door as.
const template = "smtp"

// session is what a client has said since its EHLO. The library resets it while it still reads a text in
// chunks, so it has a lock.
type session struct {
	server    *Server
	conn      *conn
	client    *smtp.Conn
	encrypted bool
	trusted   bool // may sign in: encrypted, or from this machine
	key       string
	signedIn  bool
	failures  int

	mu    sync.Mutex
	id    string // of the email, for its reply and the log
	began time.Time
	from  address.Address
	to    []recipient
	mail  *delivery.Mail // nil: none is open
	end   context.CancelFunc
	held  int64 // octets of Server.texts

	repeat          *repeat // the one recipient that may have got the email
	recorded, alone bool    // there is a record, of this node alone
}

// recipient is one that is charged.
type recipient struct {
	address.Address
	result delivery.Result
}

// repeat is a recipient whose limit is reached, of whose last email the reply may be lost.
type repeat struct {
	address.Address
	last    record
	refusal *smtp.SMTPError
}

// Mail implements smtp.Session.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sender, err := address.Parse(from, address.Identity{})
	switch {
	case !s.trusted:
		return noTLS
	case !s.ready():
		return noKey
	case s.mail != nil:
		return openAlready
	case from == "":
		return nullSender
	case err != nil || !s.server.Senders.allow(sender):
		return senderRefused
	}
	s.id, s.began, s.from, s.repeat, s.recorded = throttle.NewID().String(), time.Now(), sender, nil, false
	ctx, end := context.WithCancel(s.server.life)
	s.mail, s.end = s.server.Delivery.Mail(ctx), end
	s.client.Server().MaxMessageBytes = int64(s.server.MaxBytes) + 1 // the library takes one octet less
	return nil
}

// ready reports whether a client may send. Without keys it is one of this machine.
func (s *session) ready() bool {
	if s.server.Keys.IsZero() && !s.signedIn {
		s.signedIn = s.server.signIn(s.conn, "")
		s.conn.limit(noLimit)
	}
	return s.signedIn
}

// Rcpt implements smtp.Session: it charges a recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	mailbox, err := address.Parse(to, s.server.Identity)
	if err != nil {
		return invalidRecipient(err)
	}
	if slices.ContainsFunc(s.to, func(r recipient) bool { return r.String() == mailbox.String() }) {
		return nil
	}
	if s.repeat != nil {
		return alone
	}
	traits := rules.Send{Mailbox: mailbox.Key(), Caller: s.caller(), Template: template}
	result, err := s.mail.Charge(s.server.Rules(), mailbox, traits)
	if err != nil {
		return s.notCharged(mailbox, err)
	}
	if err := s.open(mailbox); err != nil {
		s.mail.Withdraw(mailbox)
		return s.notCharged(mailbox, err)
	}
	s.hurry()
	s.to = append(s.to, recipient{mailbox, result})
	s.logShadows(mailbox, result.Decision)
	return nil
}

// noCaller is the key of all where there are no keys, as over HTTP.
const noCaller = "local"

func (s *session) caller() string {
	if s.key == "" {
		return noCaller
	}
	return s.key
}

// hurry begins the time in which the text must come.
func (s *session) hurry() {
	if len(s.to) == 0 {
		s.conn.limit(time.Now().Add(s.server.times.Arrival))
	}
}

func (s *session) notCharged(mailbox address.Address, err error) error {
	e, _ := errors.AsType[*delivery.Error](err)
	if e == nil || e.Kind != delivery.Limited {
		answer := failed(err, false)
		s.log(entry{to: mailbox, answer: answer, outcome: outcome(mailbox, err), cause: err})
		return answer
	}
	d := e.Result.Decision
	told := report.Of(&d, "", func(string) string { return "" }, s.server.Now())
	answer := s.limited(&told)
	if answer = s.mayRepeat(mailbox, answer); answer == nil {
		return nil
	}
	s.log(entry{to: mailbox, answer: answer, report: &told, outcome: string(delivery.Limited)})
	return answer
}

// mayRepeat returns the answer to a recipient whose limit is reached. It is nil if the text may be that of the
// email that used the limit, whose reply was lost: that is decided when the text has come.
func (s *session) mayRepeat(mailbox address.Address, refusal *smtp.SMTPError) *smtp.SMTPError {
	last, now, err := s.update(mailbox, func(record, int64) (record, bool) { return record{}, false })
	open, ended := last.is(now)
	switch {
	case err != nil:
		return failed(err, false)
	case open && last.Email != s.id:
		return inProgress
	case !ended:
		return refusal
	case len(s.to) > 0:
		s.repeat = &repeat{}
		return alone
	}
	s.hurry()
	s.repeat = &repeat{mailbox, last, refusal}
	return nil
}

// Data implements smtp.Session: it reads the text and hands it over. The answer is the relay's.
func (s *session) Data(r io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mail == nil {
		return smtp.ErrDataReset // reset before the library's goroutine began
	}
	front := s.received(time.UnixMilli(s.server.Now()))
	text, answer, err := s.read(front, r)
	defer s.forget()
	if answer == nil {
		answer = s.server.Senders.checkText(text[len(front):])
	}
	if answer != nil {
		s.abandon(answer, err)
		return answer
	}
	hash, life := fingerprint(text[len(front):])
	if answer := s.earlier(hash, life); answer != nil {
		return answer
	}
	ctx, cancel := context.WithTimeout(s.server.life, s.server.times.Answer)
	defer cancel()
	err = s.mail.HandOver(ctx, relay.Envelope{From: s.from, EightBit: eightBit(text), By: time.Now().Add(s.server.times.Begin)}, text)
	answer = reply(250, 2, 0, 0, "accepted by the relay ["+s.id+"]")
	if err != nil {
		answer = failed(err, s.mail.Stays())
	}
	for _, to := range s.to {
		s.log(entry{to: to.Address, result: to.result, answer: answer, outcome: outcome(to.Address, err), cause: err})
	}
	s.keep(answer, life, s.mail.Stays())
	s.close()
	return answer
}

// earlier returns the answer to a text that was sent before, or is being sent, and refunds this one. A
// recipient of several who got it does not get it again.
func (s *session) earlier(hash []byte, life int64) *smtp.SMTPError {
	if r := s.repeat; r != nil && !r.IsZero() {
		answer := r.refusal
		s.conn.replied(nil)
		if bytes.Equal(r.last.Text, hash) {
			answer = r.last.answer()
			s.conn.replied(func() { s.settle(hash, r.Address) })
		}
		s.log(entry{to: r.Address, answer: answer, outcome: "repeated"})
		s.close()
		return answer
	}
	var first *smtp.SMTPError
	var repeated []address.Address
	for _, to := range slices.Clone(s.to) {
		answer, err := s.leave(to.Address, hash, life)
		if err != nil {
			answer = failed(err, false)
		}
		if answer == nil {
			continue
		}
		if first = answer; answer.Code != 250 {
			repeated = []address.Address{to.Address}
			break
		}
		repeated = append(repeated, to.Address)
		s.log(entry{to: to.Address, answer: answer, outcome: "repeated"})
		s.mail.Withdraw(to.Address)
		s.to = slices.DeleteFunc(s.to, func(r recipient) bool { return r.Address == to.Address })
	}
	if first == nil || first.Code == 250 && len(s.to) > 0 {
		return nil
	}
	s.abandon(first, nil)
	if first.Code/100 != 4 {
		s.conn.replied(func() { s.settle(hash, repeated...) })
	}
	return first
}

// keep records the reply to an email until a command has come after it, which its client sends when it has
// read the reply. An email that nothing stays charged for is forgotten.
func (s *session) keep(answer *smtp.SMTPError, life int64, stays bool) {
	id, all := s.id, s.to
	if !stays {
		s.finish(id, all, nil, 0)
		return
	}
	s.finish(id, all, answer, life)
	s.conn.replied(func() { s.finish(id, all, nil, 0) })
}

// outcome is what came of an email for one recipient.
func outcome(to address.Address, err error) string {
	e, _ := errors.AsType[*delivery.Error](err)
	switch {
	case err == nil:
		return "sent"
	case e == nil:
		return string(delivery.Storage)
	}
	if refused, _ := errors.AsType[*relay.Error](err); e.Kind == delivery.Rejected && refused != nil && !refused.To.IsZero() && refused.To != to {
		return string(delivery.Unavailable) // as the relay refused another
	}
	return string(e.Kind)
}

// Reset implements smtp.Session.
func (s *session) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandon(nil, nil)
}

// Logout implements smtp.Session. What ends TLS is no command.
func (s *session) Logout() error {
	s.Reset()
	s.conn.replied(nil)
	return nil
}

// abandon refunds the recipients of an email that does not leave.
func (s *session) abandon(answer *smtp.SMTPError, cause error) {
	if s.mail == nil {
		return
	}
	s.mail.Abandon()
	for _, to := range s.to {
		s.log(entry{to: to.Address, result: to.result, answer: answer, outcome: abandoned, cause: cause})
	}
	s.finish(s.id, s.to, nil, 0)
	s.close()
}

// close ends an email. The next one may take any time to come.
func (s *session) close() {
	s.end()
	s.mail, s.to, s.repeat = nil, nil, nil
	s.conn.limit(noLimit)
	s.client.Server().MaxMessageBytes = int64(s.server.MaxBytes)
}
