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
}

// recipient is one that is charged.
type recipient struct {
	address.Address
	result delivery.Result
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
	s.id, s.began, s.from = throttle.NewID().String(), time.Now(), sender
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
	traits := rules.Send{Mailbox: mailbox.Key(), Caller: s.caller(), Template: template}
	result, err := s.mail.Charge(s.server.Rules(), mailbox, traits)
	if err != nil {
		return s.notCharged(mailbox, err)
	}
	if len(s.to) == 0 {
		s.conn.limit(time.Now().Add(s.server.times.arrival))
	}
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

func (s *session) notCharged(mailbox address.Address, err error) error {
	e, limited := errors.AsType[*delivery.Error](err)
	if limited = limited && e.Kind == delivery.Limited; !limited {
		answer := failed(err, false)
		s.log(entry{to: mailbox, answer: answer, outcome: outcome(mailbox, err), cause: err})
		return answer
	}
	d := e.Result.Decision
	told := report.Of(&d, "", func(string) string { return "" }, s.server.Now())
	answer := s.limited(&told)
	s.log(entry{to: mailbox, answer: answer, report: &told, outcome: string(delivery.Limited)})
	return answer
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
	ctx, cancel := context.WithTimeout(s.server.life, s.server.times.answer)
	defer cancel()
	err = s.mail.HandOver(ctx, relay.Envelope{From: s.from, EightBit: eightBit(text), By: time.Now().Add(s.server.times.begin)}, text)
	answer = reply(250, 2, 0, 0, "accepted by the relay ["+s.id+"]")
	if err != nil {
		answer = failed(err, s.mail.MayHaveLeft())
	}
	for _, to := range s.to {
		s.log(entry{to: to.Address, result: to.result, answer: answer, outcome: outcome(to.Address, err), cause: err})
	}
	s.close()
	return answer
}

// outcome is what came of an email for one recipient.
func outcome(to address.Address, err error) string {
	e, _ := errors.AsType[*delivery.Error](err)
	if e == nil {
		return "sent"
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

// Logout implements smtp.Session.
func (s *session) Logout() error {
	s.Reset()
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
	s.close()
}

// close ends an email. The next one may take any time to come.
func (s *session) close() {
	s.end()
	s.mail, s.to = nil, nil
	s.conn.limit(noLimit)
	s.client.Server().MaxMessageBytes = int64(s.server.MaxBytes)
}
