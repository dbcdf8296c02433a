package api

import (
	"errors"

	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// solve checks the token of a solved challenge, where one can make a difference. The rules let it count once.
func (s *Server) solve(r *request, traits *rules.Send, token string) {
	if token == "" || !r.live.Rules.Challenges() {
		return
	}
	hash, kind, err := s.challenges.Check(r.ctx, token, challenge.For{Mailbox: traits.Mailbox, Client: traits.Client}, s.with.Now())
	traits.Solved, r.unsolved = hash, err
	result := "solved"
	switch {
	case errors.Is(err, challenge.ErrVerifier):
		result = "failed"
	case err != nil:
		result = "unsolved"
	}
	s.metrics.challenges.WithLabelValues(kind, result).Inc()
}

// challenged returns the problem of a refusal that a solved challenge lifts. Other doors have no room for one. While the verifier of one fails, the
// other is offered alone.
func (s *Server) challenged(r *request, traits rules.Send, rep *report.Report) *problem {
	r.What = ledger.Challenged
	failed := errors.Is(r.unsolved, challenge.ErrVerifier)
	offer := s.challenges.Offer(challenge.For{Mailbox: traits.Mailbox, Client: traits.Client}, s.with.Now(), !failed)
	p := &problem{kind: challengeRequired, report: rep, cause: r.unsolved, members: members{Challenge: &offer}}
	switch {
	case failed:
		p.detail = "The challenge cannot be verified now. Solve the proof of work and send again with it."
	case r.unsolved != nil:
		p.detail = sentence(r.unsolved.Error()) + " Solve this one and send again with it."
	case traits.Solved != "":
		p.detail = "The token was used before. Solve this challenge and send again with it."
	}
	return p
}

// peek decides for a countdown or a look at a mailbox, which waits for no rule whose challenge can be solved.
func (r *request) peek(send rules.Send) (rules.Decision, error) {
	d, err := r.live.Rules.Peek(r.ctx, send)
	if d.Challenge {
		d.Rule, d.By, d.Verdict = "", "", throttle.Verdict{Now: d.Verdict.Now, RetryAt: d.Verdict.Now, Degraded: d.Degraded}
	}
	return d, err
}
