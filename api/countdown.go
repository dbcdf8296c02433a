package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/rules"
)

// countdownLife is how many milliseconds a token is good for, or until its wait is over.
const countdownLife = 24 * 60 * 60 * 1000

// counted is the standing of a send, with a token to count down by.
func (s *Server) counted(mailbox mailer.Address, d rules.Decision) standing {
	st := s.ofSend(d)
	st.countdown = s.countdown(mailbox, &st.decision)
	return st
}

// countdown is a token for the wait that an answer tells. It holds the mailbox. Who asks
// by it may look at nothing else, so a wait for a rule of the visitor, the caller or the
// template is in the token too, or it would seem to be over.
func (s *Server) countdown(mailbox mailer.Address, d *rules.Decision) string {
	v := &d.Verdict
	b := append(make([]byte, 0, 320), mailbox.Key()...)
	if d.By == rules.ByClientIP || d.By == rules.ByAPIKey || d.By == rules.ByTemplate {
		b = append(append(b, '\n'), v.Limit...)
		b = strconv.AppendInt(append(b, '\n'), v.RetryAt(), 10)
	}
	return s.tokens.Seal(string(b), s.with.Now()+max(countdownLife, wire.Wait(v)))
}

// A waiting is what a countdown's token stands for: a mailbox, and perhaps another wait.
type waiting struct {
	mailbox mailer.Address
	limit   string
	until   int64
}

// readCountdown opens the token. Whatever is wrong with it is one answer.
func (s *Server) readCountdown(in *incoming) (w waiting, err error) {
	text, err := s.tokens.Open(string(in.parameter), s.with.Now())
	if err != nil {
		return w, &problem{kind: unknownCountdown}
	}
	key, other, waits := strings.Cut(text, "\n")
	if waits {
		limit, until, _ := strings.Cut(other, "\n")
		w.limit = limit
		if w.until, err = strconv.ParseInt(until, 10, 64); err != nil {
			return w, fmt.Errorf("reading a countdown: %w", err)
		}
	}
	w.mailbox, err = mailer.ParseAddress(key, s.with.Identity)
	return w, err
}

// A remaining is what is left of a wait.
type remaining struct {
	limit     string
	wait, now int64
}

// count looks how long the mailbox still has to wait.
func (s *Server) count(ctx context.Context, c *call, w waiting) (remaining, error) {
	c.mailbox = w.mailbox
	decision, err := c.live.Rules.Peek(ctx, rules.Send{Mailbox: w.mailbox.Key(), Domain: domainOf(w.mailbox)})
	if err != nil {
		return remaining{}, err
	}
	v := s.ofSend(decision).decision.Verdict
	left := remaining{v.Limit, wire.Wait(&v), v.Now}
	if rest := w.until - v.Now; rest > left.wait {
		left.limit, left.wait = w.limit, rest
	}
	c.limit = left.limit
	return left, nil
}

func writeRemaining(out *answer, left *remaining) {
	out.json(200)
	b := append(out.body, `{"limit":`...)
	b = wire.AppendName(b, left.limit)
	b = append(b, `,"wait_ms":`...)
	b = strconv.AppendInt(b, left.wait, 10)
	b = append(b, `,"retry_at":`...)
	b = wire.AppendTime(b, left.now+left.wait)
	b = append(b, `,"server_time":`...)
	b = wire.AppendTime(b, left.now)
	out.body = append(b, '}')
}
