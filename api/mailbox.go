package api

import (
	"context"
	"log/slog"
	"strconv"
	"unicode/utf8"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/throttle"
)

// A sight is how a mailbox stands.
type sight struct {
	mailbox mailer.Address
	standing
}

// look answers what a send by the caller would be told, as far as it does not depend on
// the visitor or the template, and spends nothing.
func (s *Server) look(ctx context.Context, c *call, mailbox mailer.Address) (sight, error) {
	send := sendTo(mailbox)
	send.Caller = c.caller()
	seen, err := s.seen(ctx, c, mailbox, send)
	if err == nil {
		seen.countdown = s.countdown(send, &seen.decision.Verdict)
	}
	return seen, err
}

func (s *Server) seen(ctx context.Context, c *call, mailbox mailer.Address, send rules.Send) (sight, error) {
	c.mailbox = mailbox
	decision, err := c.live.Rules.Peek(ctx, send)
	if err != nil {
		return sight{}, err
	}
	done := sight{mailbox, s.ofSend(decision)}
	c.note(&done.standing)
	return done, nil
}

func writeSight(out *answer, done *sight) {
	out.json()
	out.body = append(appendSight(out, done), '}')
}

func appendSight(out *answer, done *sight) []byte {
	out.show(&done.standing)
	b := append(out.body, `{"email":`...)
	b = wire.AppendString(b, done.mailbox.String())
	b = append(b, ',')
	return appendStanding(b, &done.standing, out)
}

// An inspection is what an operator sees of a mailbox.
type inspection struct {
	sight
	sends   throttle.History
	guesses []throttle.Standing // at its codes; none where no codes are checked
}

func (s *Server) inspect(ctx context.Context, c *call, mailbox mailer.Address) (inspection, error) {
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

func writeInspection(out *answer, done *inspection) {
	out.json()
	b := append(appendSight(out, &done.sight), `,"sends":[`...)
	for i, send := range done.sends {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":"`...)
		b = append(b, send.ID[:]...)
		b = append(b, `","at":`...)
		b = wire.AppendTime(b, send.At)
		b = append(b, '}')
	}
	b = append(b, ']')
	if done.guesses != nil {
		b = wire.AppendStandings(append(b, `,"guesses":`...), done.guesses)
	}
	out.body = appendLogged(b, done.mailbox)
}

// appendLogged ends an answer for operators with what the log calls the mailbox, which
// they could not know otherwise.
func appendLogged(b []byte, mailbox mailer.Address) []byte {
	b = append(b, `,"mailbox":`...)
	return append(wire.AppendString(b, mailbox.Hash()), '}')
}

// maxReason is how long an operator's reason may be, in characters, as the console's field
// and a schema count.
const maxReason = 500

// A resetRequest asks to forget a mailbox.
type resetRequest struct {
	mailbox mailer.Address
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

// A cleared is how many sends were forgotten, and guesses at codes.
type cleared struct {
	mailbox        mailer.Address
	sends, guesses int
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
	return cleared{q.mailbox, n, guesses}, nil
}

// notReset is what is said where a history failed. A reset has several steps, and the answer
// of one can be lost, so it does not say that nothing was done.
const notReset = "The reset may be incomplete. Repeat it when the storage is available again; a second reset does no harm."

func writeCleared(out *answer, done *cleared) {
	out.json()
	b := append(out.body, `{"email":`...)
	b = wire.AppendString(b, done.mailbox.String())
	b = append(b, `,"cleared":`...)
	b = strconv.AppendInt(b, int64(done.sends), 10)
	b = append(b, `,"guesses_cleared":`...)
	b = strconv.AppendInt(b, int64(done.guesses), 10)
	out.body = appendLogged(b, done.mailbox)
}
