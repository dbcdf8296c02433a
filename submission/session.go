package submission

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/trace"
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
	full  bool            // one of them comes alone, so the others have to come later
	mail  *delivery.Mail  // nil: none is open
	life  context.Context // of the email; carries its span
	end   context.CancelFunc
	held  int64 // octets of Server.texts

	recorded, alone bool // there is a record, of this node alone
}

// recipient is one that is charged, or whose limit is reached: then the text must be that of its last email, of
// which the reply may be lost.
type recipient struct {
	address.Address
	email   string // whose record it has
	named   int64  // when, by the clock of the records
	result  delivery.Result
	refused *entry
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
	s.id, s.began, s.from, s.full, s.recorded = throttle.NewID().String(), time.Now(), sender, false, false
	s.life, s.end = context.WithCancel(s.server.Tracer.Begin(s.server.life, door, s.began, func(string) string { return "" }))
	s.mail = s.server.Delivery.Mail(s.life)
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
	if s.full {
		return alone
	}
	traits := rules.Send{Mailbox: mailbox.Key(), Caller: s.caller(), Template: template, Unverifiable: true}
	result, err := s.mail.Charge(s.server.Rules(), mailbox, traits)
	one := recipient{Address: mailbox, email: s.id, result: result}
	if err == nil {
		if one.named, err = s.open(mailbox); err != nil {
			s.mail.Withdraw(mailbox)
		}
	}
	if err != nil {
		if one.refused, err = s.notCharged(mailbox, err); err != nil {
			return err
		}
	}
	if len(s.to) == 0 { // the time begins in which the text must come
		s.conn.limit(time.Now().Add(s.server.times.Arrival))
	}
	s.to = append(s.to, one)
	s.server.Shadows(door, s.id, mailbox, result.Decision)
	return nil
}

func (s *session) caller() string { return rules.Caller(s.key) }

// notCharged returns the answer to a recipient who is not charged, or the refusal that its text may lift.
func (s *session) notCharged(mailbox address.Address, err error) (*entry, error) {
	e, _ := errors.AsType[*delivery.Error](err)
	refused := &entry{to: mailbox, answer: failed(err, false), outcome: outcome(mailbox, err), cause: err}
	switch {
	case e != nil && e.Kind == delivery.Limited:
		told := report.Of(&e.Result.Decision, "", func(string) string { return "" }, s.server.Now())
		refused.answer, refused.report, refused.cause = s.limited(&told), &told, nil
	case e != nil && e.Kind == delivery.Denied:
		refused.report, refused.cause = &report.Report{Rule: e.Rule}, nil
		s.log(*refused)
		return nil, refused.answer
	case e == nil || e.Kind != delivery.Suppressed: // after a bounce the same email may have used the one of the day
		s.log(*refused)
		return nil, refused.answer
	}
	answer := s.mayRepeat(mailbox, refused.answer)
	if answer == nil {
		s.full = true
		if len(s.to) == 0 {
			return refused, nil
		}
		answer = alone
	}
	refused.answer = answer
	s.log(*refused)
	return nil, answer
}

// Data implements smtp.Session: it reads the text and hands it over. The answer is the relay's.
func (s *session) Data(r io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mail == nil {
		return smtp.ErrDataReset // reset before the library's goroutine began
	}
	defer s.freeText()
	whole, text, answer, cause := s.read(r)
	hash, life := fingerprint(text)
	if answer == nil {
		answer = s.earlier(hash, life)
	}
	if answer != nil {
		s.abandon(answer, cause)
		return answer
	}
	ctx, cancel := context.WithTimeout(s.life, s.server.times.Answer)
	defer cancel()
	err := s.mail.HandOver(ctx, relay.Envelope{From: s.from, EightBit: eightBit(text), By: time.Now().Add(s.server.times.Begin)}, whole)
	answer = reply(250, 2, 0, 0, "accepted by the relay ["+s.id+"]")
	if err != nil {
		answer = failed(err, s.mail.Stays())
	}
	for _, to := range s.to {
		s.log(entry{to: to.Address, result: to.result, answer: answer, outcome: outcome(to.Address, err), cause: err})
	}
	if all := s.to; s.mail.Stays() {
		s.settle(all, answer, life)
		s.conn.replied(func() { s.arrived(all) })
	} else {
		s.settle(all, nil, 0)
	}
	s.close()
	return answer
}

// earlier returns the answer to a text that was sent before, or is being sent, or whose recipient must have had it and
// has not. A recipient of several who got it does not get it again.
func (s *session) earlier(hash []byte, life int64) (answer *smtp.SMTPError) {
	var had []recipient
	for _, to := range slices.Clone(s.to) {
		one, email := s.claim(to, hash, life)
		if one == nil {
			continue
		}
		switch answer = one; {
		case email != "":
			to.email = email
			had = append(had, to)
			s.log(entry{to: to.Address, answer: one, outcome: repeated})
		case to.refused == nil:
			return answer
		default:
			to.refused.answer = one
			s.log(*to.refused)
		}
		s.mail.Withdraw(to.Address)
		s.to = slices.DeleteFunc(s.to, func(r recipient) bool { return r.Address == to.Address })
		if one.Code != 250 {
			break
		}
	}
	if answer != nil && answer.Code == 250 && len(s.to) > 0 {
		return nil
	}
	s.conn.replied(func() { s.arrived(had) })
	return answer
}

// outcome is what came of an email for one recipient.
func outcome(to address.Address, err error) string {
	e, _ := errors.AsType[*delivery.Error](err)
	switch {
	case err == nil:
		return sent
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
	s.settle(s.to, nil, 0)
	s.close()
}

// close ends an email. The next one may take any time to come.
func (s *session) close() {
	s.end()
	trace.Of(s.life).End("")
	s.life, s.mail, s.to = nil, nil, nil
	s.conn.limit(noLimit)
	s.client.Server().MaxMessageBytes = int64(s.server.MaxBytes)
}
