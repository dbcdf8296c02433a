package api

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/throttle"
)

// A standing is how a mailbox stands.
type standing struct {
	mailbox mailer.Address
	verdict throttle.Verdict
}

// look answers what a send would be told, and spends nothing.
func (s *Server) look(ctx context.Context, c *call, mailbox mailer.Address) (standing, error) {
	c.mailbox = mailbox
	verdict, err := s.with.Limiter.Peek(ctx, mailbox.Key())
	if err != nil {
		return standing{}, err
	}
	c.limit = verdict.Limit
	return standing{mailbox, verdict}, nil
}

func writeStanding(out *answer, done *standing) {
	out.json(200)
	out.body = append(appendStanding(out, done), '}')
}

func appendStanding(out *answer, done *standing) []byte {
	out.show(&done.verdict)
	b := append(out.body, `{"email":`...)
	b = appendString(b, done.mailbox.String())
	b = append(b, ',')
	return appendVerdict(b, &done.verdict, out.tiers)
}

// An inspection is what an operator sees of a mailbox.
type inspection struct {
	standing
	sends throttle.History
}

func (s *Server) inspect(ctx context.Context, c *call, mailbox mailer.Address) (inspection, error) {
	seen, err := s.look(ctx, c, mailbox)
	if err != nil {
		return inspection{}, err
	}
	sends, err := s.with.Limiter.History(ctx, mailbox.Key())
	return inspection{seen, sends}, err
}

func writeInspection(out *answer, done *inspection) {
	out.json(200)
	b := append(appendStanding(out, &done.standing), `,"sends":[`...)
	for i, send := range done.sends {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":"`...)
		b = append(b, send.ID[:]...)
		b = append(b, `","at":`...)
		b = appendTime(b, send.At)
		b = append(b, '}')
	}
	out.body = append(b, "]}"...)
}

// maxReason is how long an operator's reason may be, in bytes.
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
	q.reason = reason.value
	if len(q.reason) > maxReason {
		return q, &problem{kind: invalid, fields: []fieldProblem{{"reason", "too-long", "reason may have 500 bytes."}}}
	}
	return q, nil
}

// A cleared is how many sends were forgotten.
type cleared struct {
	mailbox mailer.Address
	sends   int
}

// reset forgets the mailbox and writes who did it and why.
func (s *Server) reset(ctx context.Context, c *call, q resetRequest) (cleared, error) {
	c.mailbox = q.mailbox
	n, err := s.with.Limiter.Reset(ctx, q.mailbox.Key())
	if err != nil {
		return cleared{}, err
	}
	s.with.Audit.LogAttrs(ctx, slog.LevelInfo, "mailbox reset",
		slog.String("request_id", c.requestID),
		slog.String("key", c.key),
		slog.String("from", c.client.String()),
		slog.String("mailbox", q.mailbox.Hash()),
		slog.String("reason", q.reason),
		slog.Int("cleared", n),
	)
	s.metrics.resets.Inc()
	return cleared{q.mailbox, n}, nil
}

func writeCleared(out *answer, done *cleared) {
	out.json(200)
	b := append(out.body, `{"email":`...)
	b = appendString(b, done.mailbox.String())
	b = append(b, `,"cleared":`...)
	b = strconv.AppendInt(b, int64(done.sends), 10)
	out.body = append(b, '}')
}
