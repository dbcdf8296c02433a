package api

import (
	"log/slog"
	"net/url"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/mailer/address"
)

type mailboxAnswer struct {
	Email string `json:"email"`
}

// inspectAnswer is what an operator sees of a mailbox, with its hash to search the log for.
type inspectAnswer struct {
	mailboxAnswer
	Sends   []recordedSend `json:"sends"`
	Guesses report.Limits  `json:"guesses"` // at its codes
	Mailbox string         `json:"mailbox"`
}

type recordedSend struct {
	ID string `json:"id"`
	At string `json:"at"`
}

type mailboxResetBody struct {
	Reason string `json:"reason" validate:"max=500"`
}

// mailboxResetAnswer says how many sends were cleared, and how many guesses at codes.
type mailboxResetAnswer struct {
	Email   string `json:"email"`
	Cleared int    `json:"cleared"`
	Guesses int    `json:"guesses_cleared"`
	Mailbox string `json:"mailbox"` // its hash, as in the log
}

// mailbox parses the address in the path, and notes it for the log.
func (s *Server) mailbox(c *fiber.Ctx) (mailbox address.Address, err error) {
	text, err := url.PathUnescape(c.Params("email"))
	if err != nil {
		return mailbox, &problem{kind: badRequest, detail: "The path has a % without two hexadecimal digits after it."}
	}
	mailbox, err = address.Parse(trimmed(text), s.with.Identity)
	requestOf(c).mailbox = mailbox
	return mailbox, err
}

// lookUpMailbox is peekMailbox for the address in the path.
func (s *Server) lookUpMailbox(c *fiber.Ctx) error {
	mailbox, err := s.mailbox(c)
	if err != nil {
		return err
	}
	return s.peek(c, mailbox)
}

type mailboxBody struct {
	Email *string `json:"email" validate:"required,address"`
}

// peekMailbox answers as a send by the caller would be answered by the rules that do not count by
// visitor or template, and charges nothing. Its address is in no log of a proxy, as a path is.
func (s *Server) peekMailbox(c *fiber.Ctx) error {
	r := requestOf(c)
	var body mailboxBody
	if err := s.decode(c, &body); err != nil {
		return err
	}
	r.mailbox = r.parsed.address
	return s.peek(c, r.mailbox)
}

func (s *Server) peek(c *fiber.Ctx, mailbox address.Address) error {
	r := requestOf(c)
	send := sendTo(mailbox)
	send.Caller = r.callerName()
	decision, err := r.live.Rules.Peek(r.ctx, send)
	if err != nil {
		return err
	}
	return respondWith(c, mailboxAnswer{mailbox.String()}, s.toldSend(r, mailbox, send, &decision))
}

// inspectMailbox shows an operator a mailbox and its sends.
func (s *Server) inspectMailbox(c *fiber.Ctx) error {
	r := requestOf(c)
	mailbox, err := s.mailbox(c)
	if err != nil {
		return err
	}
	decision, err := r.live.Rules.Peek(r.ctx, sendTo(mailbox))
	if err != nil {
		return err
	}
	history, err := r.live.Rules.Mailbox().History(r.ctx, mailbox.Key())
	if err != nil {
		return err
	}
	guesses, err := s.with.Guesses.Peek(r.ctx, mailbox.Key())
	if err != nil {
		return err
	}
	sends := make([]recordedSend, len(history))
	for i, send := range history {
		sends[i] = recordedSend{send.ID.String(), wire.Time(send.At)}
	}
	told := r.told(report.Of(&decision, mailbox.Hash(), s.names.subject, s.with.Now()))
	return respondWith(c, inspectAnswer{mailboxAnswer{mailbox.String()}, sends, report.LimitsOf(&guesses, ""), mailbox.Hash()}, told)
}

// resetMailbox clears what every rule that counts by mailbox has counted for it, and the guesses at
// its codes. The codes stay valid.
func (s *Server) resetMailbox(c *fiber.Ctx) error {
	r := requestOf(c)
	mailbox, err := s.mailbox(c)
	if err != nil {
		return err
	}
	var body mailboxResetBody
	if err := checkEncoding(c); err != nil {
		return err
	}
	if len(c.Request().Body()) > 0 {
		if err := s.decode(c, &body); err != nil {
			return err
		}
	}
	if err := s.auditReady(r); err != nil {
		return err
	}
	cleared, err := r.live.Rules.Reset(r.ctx, mailbox.Key())
	guesses := 0
	if err == nil {
		guesses, err = s.with.Guesses.Reset(r.ctx, mailbox.Key())
	}
	s.audit(r, "mailbox reset", err,
		slog.String("mailbox", mailbox.Hash()),
		slog.String("reason", body.Reason),
		slog.Int("cleared", cleared),
		slog.Int("guesses_cleared", guesses),
	)
	if err != nil {
		return explain(err, notReset)
	}
	s.metrics.resets.Inc()
	return respond(c, mailboxResetAnswer{mailbox.String(), cleared, guesses, mailbox.Hash()})
}

// notReset is the detail of a reset when the storage failed. A reset has several steps, so a part of
// it may be done.
const notReset = "The reset may be incomplete. Repeat it when the storage is available again; a second reset does no harm."
