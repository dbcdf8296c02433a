package api

import (
	"context"
	"log/slog"
	"unicode/utf8"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// sight is the quota of a mailbox.
type sight struct {
	mailbox address.Address
	quota
}

// look answers what a send by the caller would be told, as far as it does not depend on
// the visitor or the template, and spends nothing.
func (s *Server) look(ctx context.Context, c *call, mailbox address.Address) (sight, error) {
	send := sendTo(mailbox)
	send.Caller = c.caller()
	seen, err := s.seen(ctx, c, mailbox, send)
	if err == nil {
		seen.countdown = s.countdown(send, &seen.decision.Verdict)
	}
	return seen, err
}

func (s *Server) seen(ctx context.Context, c *call, mailbox address.Address, send rules.Send) (sight, error) {
	c.mailbox = mailbox
	decision, err := c.live.Rules.Peek(ctx, send)
	if err != nil {
		return sight{}, err
	}
	done := sight{mailbox, s.quotaOf(mailbox, decision)}
	c.note(&done.quota)
	return done, nil
}

// sightBody is a sight as answers tell it.
type sightBody struct {
	Email string `json:"email"`
	wire.Verdict
}

func (out *answer) sight(done *sight) sightBody {
	out.show(&done.quota)
	return sightBody{done.mailbox.String(), out.told(&done.quota)}
}

func writeSight(out *answer, done *sight) { out.encode(out.sight(done)) }

// An inspection is what an operator sees of a mailbox.
type inspection struct {
	sight
	sends   throttle.History
	guesses []wire.Limit // at its codes; none where no codes are checked
}

func (s *Server) inspect(ctx context.Context, c *call, mailbox address.Address) (inspection, error) {
	seen, err := s.seen(ctx, c, mailbox, sendTo(mailbox)) // an operator sends nothing
	if err != nil {
		return inspection{}, inWords(err, notRead)
	}
	sends, err := c.live.Rules.Mailbox().History(ctx, mailbox.Key())
	if err != nil {
		return inspection{}, err
	}
	guesses, err := s.guesses(ctx, mailbox)
	return inspection{seen, sends, guesses}, err
}

// sendBody is a send on record.
type sendBody struct {
	ID string `json:"id"`
	At string `json:"at"`
}

// writeInspection ends with what the log calls the mailbox, which operators could not know
// otherwise.
func writeInspection(out *answer, done *inspection) {
	sends := make([]sendBody, len(done.sends))
	for i, send := range done.sends {
		sends[i] = sendBody{send.ID.String(), wire.Time(send.At)}
	}
	out.encode(struct {
		sightBody
		Sends   []sendBody   `json:"sends"`
		Guesses []wire.Limit `json:"guesses,omitzero"`
		Mailbox string       `json:"mailbox"`
	}{out.sight(&done.sight), sends, done.guesses, done.mailbox.Hash()})
}

// maxReason is how long an operator's reason may be, in characters, as the console's field
// and a schema count.
const maxReason = 500

// A resetRequest asks to forget a mailbox.
type resetRequest struct {
	mailbox address.Address
	reason  string
}

func (s *Server) readReset(in *incoming) (q resetRequest, err error) {
	if q.mailbox, err = s.readMailbox(in); err != nil {
		return q, err
	}
	if len(in.body) == 0 {
		return q, checkEncoding(in)
	}
	var reason text
	if err := readBody(in, []field{{name: "reason", text: &reason}}); err != nil {
		return q, err
	}
	if wrong := reasonProblems(reason); wrong != nil {
		return q, &problem{kind: invalid, fields: wrong}
	}
	q.reason = reason.value
	return q, nil
}

func reasonProblems(reason text) []fieldProblem {
	if utf8.RuneCountInString(reason.value) > maxReason {
		return []fieldProblem{{"reason", "too-long", "reason may have 500 characters."}}
	}
	return nil
}

// cleared is how many sends were forgotten, and guesses at codes.
type cleared struct {
	Email   string `json:"email"`
	Cleared int    `json:"cleared"`
	Guesses int    `json:"guesses_cleared"`
	Mailbox string `json:"mailbox"` // as the log calls it
}

// reset forgets the mailbox, in every rule that counts by it, and the guesses at its codes,
// and writes who did it and why. The codes themselves still are what was mailed.
func (s *Server) reset(ctx context.Context, c *call, q resetRequest) (cleared, error) {
	c.mailbox = q.mailbox
	n, err := c.live.Rules.Reset(ctx, q.mailbox.Key())
	guesses := 0
	if err == nil {
		guesses, err = s.resetGuesses(ctx, q.mailbox)
	}
	s.audit(ctx, c, "mailbox reset", err,
		slog.String("mailbox", q.mailbox.Hash()),
		slog.String("reason", q.reason),
		slog.Int("cleared", n),
		slog.Int("guesses_cleared", guesses),
	)
	if err != nil {
		return cleared{}, inWords(err, notReset)
	}
	s.metrics.resets.Inc()
	return cleared{q.mailbox.String(), n, guesses, q.mailbox.Hash()}, nil
}

// notReset is what is said where a history failed. A reset has several steps, and the answer
// of one can be lost, so it does not say that nothing was done.
const notReset = "The reset may be incomplete. Repeat it when the storage is available again; a second reset does no harm."
