package submission

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// template is what rules by template count emails of this door as.
const template = "smtp"

// mailFrom begins an email.
func (s *session) mailFrom(argument string) *reply {
	from, parameters, ok := path(argument, "FROM")
	sender, err := address.Parse(from, address.Identity{})
	if s.server.Keys.IsZero() && !s.conn.signedIn { // then only this machine is served
		s.server.signIn(s.conn, "")
		s.conn.until = noLimit
	}
	switch {
	case !s.trusted:
		return &reply{530, "5.7.0", "say STARTTLS first"}
	case !s.conn.signedIn:
		return &reply{530, "5.7.0", "sign in first: the user is the name of an API key, the password its secret"}
	case s.mail != nil:
		return wrongOrder
	case !ok:
		return badSyntax
	case from == "":
		return &reply{553, "5.7.1", "the sender is empty; bounces are not accepted"}
	case err != nil || !s.server.Senders.allow(sender):
		return &reply{553, "5.7.1", "this sender is not allowed; MAILGATE_SUBMISSION_SENDERS lists those that are"}
	}
	for _, one := range parameters {
		switch name, value, _ := strings.Cut(strings.ToUpper(one), "="); name {
		case "SIZE":
			if n, err := strconv.ParseUint(value, 10, 64); n > uint64(s.server.MaxBytes) { // as it is beyond 64 bits
				return tooLarge
			} else if err != nil {
				return badArgument
			}
		case "BODY":
			if value != "7BIT" && value != "8BITMIME" {
				return badArgument
			}
		case "AUTH": // RFC 4954, 5: who the client says the email is from, which is not trusted
		default:
			return noParameter
		}
	}
	s.id, s.began, s.from = throttle.NewID().String(), time.Now(), sender
	s.life, s.end = context.WithCancel(s.server.Tracer.Begin(s.server.life, ledger.SMTP, s.began, func(string) string { return "" }))
	s.mail = s.server.Delivery.Attempt(s.life, s.id)
	return done
}

// paths are the arguments of MAIL and RCPT: an address, without a route before it, and parameters.
var paths = regexp.MustCompile(`(?i)^(FROM|TO): *(?:<(?:@[^:>]*:)?([^>]*)>|([^ <]+))(.*)$`)

func path(argument, keyword string) (mailbox string, parameters []string, ok bool) {
	found := paths.FindStringSubmatch(argument)
	if found == nil || !strings.EqualFold(found[1], keyword) {
		return "", nil, false
	}
	return found[2] + found[3], strings.Fields(found[4]), true
}

// rcptTo charges a recipient.
func (s *session) rcptTo(argument string) *reply {
	to, parameters, ok := path(argument, "TO")
	if s.mail == nil {
		return wrongOrder
	}
	charged := s.mail.Recipients()
	mailbox, err := address.Parse(to, s.server.Identity)
	switch {
	case !ok:
		return badSyntax
	case err == address.Reason("local-not-ascii"):
		return &reply{553, "5.6.7", err.Error()}
	case err != nil:
		return &reply{553, "5.1.3", err.Error()}
	case len(parameters) > 0:
		return noParameter
	case slices.ContainsFunc(charged, func(r delivery.Recipient) bool { return r.Address.String() == mailbox.String() }):
		return done
	case len(charged) == maxRecipients:
		return &reply{452, "4.5.3", "the email has too many recipients"}
	}
	traits := rules.Send{Mailbox: mailbox.Key(), Caller: rules.Caller(s.conn.key), Template: template, Unverifiable: true}
	result, err := s.mail.Charge(delivery.Send{Rules: s.server.Delivery.Live().Rules, Mail: message.Request{To: mailbox}, Traits: traits})
	if err != nil {
		refused, answer := s.outcome(mailbox, err)
		s.note(refused, answer)
		return answer
	}
	if len(charged) == 0 { // the time begins in which the text must come
		s.conn.until = time.Now().Add(s.server.times.Arrival)
	}
	s.server.Ledger.Shadows(ledger.SMTP, s.id, mailbox, &result.Decision)
	return done
}

// data reads the text and hands it over. The answer is the relay's, or that of an earlier try.
func (s *session) data(argument string) *reply {
	switch {
	case s.mail == nil || len(s.mail.Recipients()) == 0:
		return wrongOrder
	case argument != "":
		return badArgument
	}
	s.conn.say(&reply{354, "", "end the text with a dot on a line of its own"})
	var cause error
	whole, text, answer := s.read()
	if answer == nil {
		answer, cause = s.repeats(text)
	}
	if answer != nil {
		s.abandon(answer, cause)
		return answer
	}
	ctx, cancel := context.WithTimeout(s.life, s.server.times.Answer)
	defer cancel()
	err := s.mail.HandOver(ctx, relay.Envelope{From: s.from, EightBit: eightBit(text), By: time.Now().Add(s.server.times.Begin)}, whole)
	for _, to := range s.mail.Recipients() {
		var came ledger.Outcome
		came, answer = s.outcome(to.Address, err)
		s.noteCharged(to, came, answer)
	}
	s.mail.Finish(idempotency.Answer{Status: answer.code, Body: []byte(answer.enhanced + " " + answer.text)})
	s.close()
	return answer
}

// textLife is for how many milliseconds a text without a Message-ID is the same email.
const textLife = 15 * 60_000

// repeats withdraws the recipients to whom the email was handed over before. It returns the answer if none is left, if
// the first reply was not 250, or if another connection is sending the email.
func (s *session) repeats(text []byte) (answer *reply, err error) {
	known, id := s.server.Repeats, text
	if value, n, _ := field(text, "message-id"); n == 1 && strings.TrimSpace(value) != "" && len(value) <= maxField {
		id = []byte(strings.TrimSpace(value))
	} else {
		known = known.Keeping(textLife)
	}
	for _, to := range s.mail.Recipients() {
		sum := sha256.Sum256(slices.Concat([]byte(to.Address.String()), []byte("\n"), id))
		name := idempotency.Name{Caller: rules.Caller(s.conn.key), Key: base64.RawURLEncoding.EncodeToString(sum[:])}
		first, err := s.mail.Claim(known, to.Address, name)
		switch {
		case err != nil:
			_, answer = s.outcome(to.Address, err)
			return answer, err
		case first == nil:
			continue
		}
		enhanced, said, _ := bytes.Cut(first.Body, []byte(" "))
		answer = &reply{first.Status, string(enhanced), string(said) + "; not sent again"}
		s.note(ledger.Outcome{What: ledger.Repeated, Mailbox: to.Address}, answer)
		s.mail.Withdraw(to.Address)
		if answer.code != 250 {
			return answer, nil
		}
	}
	if len(s.mail.Recipients()) > 0 {
		answer = nil
	}
	return answer, nil
}

// abandon refunds the recipients of an email that does not leave.
func (s *session) abandon(answer *reply, cause error) {
	if s.mail == nil {
		return
	}
	s.mail.Abandon()
	for _, to := range s.mail.Recipients() {
		s.noteCharged(to, ledger.Outcome{What: ledger.Abandoned, Mailbox: to.Address, Cause: cause}, answer)
	}
	s.close()
}

// close ends an email. The next one may take any time to come.
func (s *session) close() {
	s.server.texts.Add(-s.held)
	s.end()
	trace.Of(s.life).End("")
	s.life, s.mail, s.held = nil, nil, 0
	s.conn.until = noLimit
}
