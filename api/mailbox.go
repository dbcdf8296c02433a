package api

import (
	"net/url"

	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle/rules"
)

type mailboxAnswer struct {
	Email      string      `json:"email"`
	Denied     string      `json:"denied,omitempty"` // the rule that denies it
	Suppressed *suppressed `json:"suppressed,omitempty"`
}

// inspectAnswer is what an operator sees of a mailbox, with its hash to search the log for.
type inspectAnswer struct {
	mailboxAnswer
	Cases        []rules.Match       `json:"cases"`
	Suppressions []suppression.Entry `json:"suppressions"`
	Sends        []recordedSend      `json:"sends"`
	Guesses      report.Limits       `json:"guesses"` // at its codes
	Mailbox      string              `json:"mailbox"`
}

type recordedSend struct {
	ID string      `json:"id"`
	At wire.Moment `json:"at"`
}

type mailboxResetBody struct {
	Reason string `json:"reason" validate:"max=500"`
}

// mailboxResetAnswer says how many sends were cleared, and how many guesses at codes.
type mailboxResetAnswer struct {
	Email   string        `json:"email"`
	Cleared int           `json:"cleared"`
	Guesses int           `json:"guesses_cleared"`
	Mailbox string        `json:"mailbox"` // its hash, as in the log
	Cases   []rules.Match `json:"cases"`
}

type mailboxBody struct {
	Email email `json:"email" validate:"address"`
}

// readMailbox reads the address in the path.
func (s *Server) readMailbox(r *request) error {
	text, err := url.PathUnescape(r.c.Params("email"))
	if err != nil {
		return &problem{kind: badRequest, detail: "The path has a % without two hexadecimal digits after it."}
	}
	r.Mailbox, err = parseAddress(text, s.with.Identity)
	return err
}

// peekMailbox is lookUpMailbox for the address in the body, which is in no log of a proxy, as a path is.
func (s *Server) peekMailbox(r *request, body *mailboxBody) (any, error) {
	r.Mailbox = body.Email.Address
	return s.lookUpMailbox(r, nil)
}

// lookUpMailbox answers as a send by the caller would be answered by the rules that do not count by visitor or template,
// and charges nothing.
func (s *Server) lookUpMailbox(r *request, _ *none) (any, error) {
	send := sendTo(r.Mailbox)
	send.Caller = r.callerName()
	decision, err := r.peek(send)
	if err != nil {
		return nil, err
	}
	answer := mailboxAnswer{Email: r.Mailbox.String(), Denied: decision.Denied}
	if found, err := s.with.Suppressions.Find(r.Mailbox); err != nil {
		return nil, err
	} else if len(found) > 0 {
		answer.Suppressed = &suppressed{found[0].Reason, found[0].Until}
	}
	return reported{answer, s.reportSend(r, send, &decision)}, nil
}

// inspectMailbox shows an operator a mailbox and its sends.
func (s *Server) inspectMailbox(r *request, _ *none) (any, error) {
	mailbox := r.Mailbox
	decision, err := r.peek(sendTo(mailbox))
	if err != nil {
		return nil, err
	}
	history, err := r.live.Rules.Mailbox(sendTo(mailbox)).History(r.ctx, mailbox.Key())
	if err != nil {
		return nil, err
	}
	guesses, err := s.with.Guesses.Peek(r.ctx, mailbox.Key())
	if err != nil {
		return nil, err
	}
	sends := make([]recordedSend, len(history))
	for i, send := range history {
		sends[i] = recordedSend{send.ID.String(), wire.Moment(send.At)}
	}
	found, err := s.with.Suppressions.Find(mailbox)
	if err != nil {
		return nil, err
	}
	if !decision.Degraded {
		s.with.Suppressions.Detail(r.ctx, found)
	}
	answer := inspectAnswer{mailboxAnswer{Email: mailbox.String(), Denied: decision.Denied}, r.live.Rules.Matches(sendTo(mailbox)), found, sends, report.LimitsOf(&guesses, ""), mailbox.Hash()}
	return reported{answer, s.reportPeek(r, &decision)}, nil
}

// resetMailbox clears what every rule that counts by mailbox has counted for it, and the guesses at
// its codes. The codes stay valid.
func (s *Server) resetMailbox(r *request, body *mailboxResetBody) (any, error) {
	mailbox, guesses := r.Mailbox, 0
	cleared, err := r.live.Rules.Reset(r.ctx, mailbox.Key())
	if err == nil {
		guesses, err = s.with.Guesses.Reset(r.ctx, mailbox.Key())
	}
	r.Reason, r.Cleared = body.Reason, []ledger.Cleared{{Name: "cleared", Count: cleared}, {Name: "guesses_cleared", Count: guesses}}
	answer := mailboxResetAnswer{mailbox.String(), cleared, guesses, mailbox.Hash(), r.live.Rules.Matches(sendTo(mailbox))}
	return answer, s.audit(r, ledger.MailboxReset, err)
}
