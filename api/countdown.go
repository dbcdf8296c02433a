package api

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// countdownLife is how many milliseconds a token is good for, or until its wait is over.
const countdownLife = 24 * 60 * 60 * 1000

// counted is the quota of a send, with a token to count down by.
func (s *Server) counted(mailbox address.Address, send rules.Send, d rules.Decision) quota {
	q := s.quotaOf(mailbox, d)
	q.countdown = s.countdown(send, &q.decision.Verdict)
	return q
}

// countdown is a token for the wait that an answer tells. It holds all that rules know of the
// send, since whom they leave alone, and what they count, is not to be seen from the mailbox
// alone. Who asks by it is told how the next such send stands, and nothing else.
func (s *Server) countdown(send rules.Send, v *throttle.Verdict) string {
	b := append(make([]byte, 0, 320), send.Mailbox...)
	b = append(append(b, '\n'), send.Caller...)
	b = append(b, '\t')
	if send.Client.IsValid() {
		b = send.Client.AppendTo(b)
	}
	b = append(append(b, '\t'), send.Template...)
	return s.tokens.Seal(string(b), s.with.Now()+max(countdownLife, wire.Wait(v)))
}

// A waiting is what a countdown's token stands for: a send.
type waiting struct {
	mailbox address.Address
	send    rules.Send
}

// readCountdown opens the token. Whatever is wrong with it is one answer.
func (s *Server) readCountdown(in *incoming) (w waiting, err error) {
	text, err := s.tokens.Open(string(in.parameter), s.with.Now())
	if err != nil {
		return w, &problem{kind: unknownCountdown}
	}
	key, rest, _ := strings.Cut(text, "\n")
	if w.mailbox, err = address.Parse(key, s.with.Identity); err != nil {
		return w, err
	}
	w.send = sendTo(w.mailbox)
	if err := w.read(rest); err != nil {
		return w, fmt.Errorf("reading a countdown: %w", err)
	}
	return w, nil
}

var errCountdown = errors.New("a token holds a mailbox, and then a caller, a client and a template")

// read reads what a token has beside the mailbox.
func (w *waiting) read(rest string) (err error) {
	parts := strings.Split(rest, "\t")
	if len(parts) != 3 {
		return errCountdown
	}
	w.send.Caller, w.send.Template = parts[0], parts[2]
	if parts[1] != "" {
		w.send.Client, err = netip.ParseAddr(parts[1])
	}
	return err
}

// remaining is what is left of a wait.
type remaining struct {
	Rule       *string `json:"rule"`
	Limit      *string `json:"limit"`
	Wait       int64   `json:"wait_ms"`
	RetryAt    string  `json:"retry_at"`
	ServerTime string  `json:"server_time"`
}

// count looks how long the next such send still has to wait.
func (s *Server) count(ctx context.Context, c *call, w waiting) (remaining, error) {
	c.mailbox = w.mailbox
	decision, err := c.live.Rules.Peek(ctx, w.send)
	if err != nil {
		return remaining{}, err
	}
	q := s.quotaOf(w.mailbox, decision)
	c.note(&q)
	v := &q.decision.Verdict
	return remaining{wire.Name(q.decision.Rule), wire.Name(v.Limit), wire.Wait(v), wire.Time(v.RetryAt), wire.Time(v.Now)}, nil
}
