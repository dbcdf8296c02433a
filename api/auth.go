package api

import (
	"context"
	"strings"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/trace"
)

// access says whose key opens a route.
type access int

const (
	open access = iota // no key is needed
	applications
	systems // genuine calls of hooks
	operators
)

// admit lets requests through whose key opens the route, and bounds how many are in progress.
func (s *Server) admit(to access) step {
	return func(r *request) error {
		if err := s.checkKey(r, to); err != nil {
			return err
		}
		return s.enter(r, to, r.Began.Add(s.with.SendDeadline))
	}
}

// traced begins the span of a request. Only callers with a key can make it a part of their trace.
func (s *Server) traced(r *request, to access) context.Context {
	if s.with.Tracer == nil || to == open {
		return s.alive
	}
	ctx := s.with.Tracer.Begin(s.alive, r.c.Route().Name, r.Began, func(field string) string {
		if r.Key == "" || r.keyOpens == systems {
			return ""
		}
		return string(r.c.Request().Header.Peek(field))
	})
	r.Span = trace.Of(ctx)
	return ctx
}

// checkKey notes the name of the caller's key. Where no keys are set, callers are the programs
// of this machine.
func (s *Server) checkKey(r *request, to access) error {
	keys := s.with.Access.APIKeys
	switch to {
	case open:
		if !s.with.Access.APIKeys.IsZero() || r.c.Route().Name == "livez" { // which tells nothing
			return nil
		}
		return s.checkHost(&r.c.Request().Header) // or a page could reach this machine by a name of its own
	case operators:
		keys = s.with.Access.AdminKeys
	}
	if keys.IsZero() && s.with.Access.APIKeys.IsZero() {
		return s.checkLocal(&r.c.Request().Header)
	}
	if r.keyOpens == to {
		r.Key = r.keyName
		return nil
	}
	if r.unknownKey { // an address that has sent too many, through all doors together, is not told that this one is wrong
		from := network.KeyOf(r.From)
		if v, err := s.with.RateLimits.WrongKeys.Take(s.alive, from); err == nil && !v.Allowed {
			return denied(r.reports(report.OfOne("wrong-keys", "this address's wrong keys", s.names.subject(from), &v)))
		}
	}
	p := &problem{kind: unauthorized}
	switch {
	case keys.IsZero():
		p.detail = "No admin keys are set at this node, so its operator routes are disabled."
	case r.keyOpens == applications:
		p.detail = "This is an API key. This route needs an admin key."
	case r.keyOpens == operators:
		p.detail = "This is an admin key. This route needs an API key."
	}
	return p
}

// identify notes what the key that came with the request opens, if it is a known one.
func (s *Server) identify(r *request) {
	secret, ok := bearer(r.c.Request().Header.Peek("Authorization"))
	if !ok {
		return
	}
	if name, ok := s.with.Access.APIKeys.Find(secret); ok {
		r.keyOpens, r.keyName = applications, name
	} else if name, ok := s.with.Access.AdminKeys.Find(secret); ok {
		r.keyOpens, r.keyName = operators, name
	} else {
		r.unknownKey = true
	}
}

// bearer returns the secret in an Authorization header.
func bearer(header []byte) (secret []byte, ok bool) {
	const scheme = "bearer "
	if len(header) <= len(scheme) || !strings.EqualFold(string(header[:len(scheme)]), scheme) {
		return nil, false
	}
	return header[len(scheme):], true
}
