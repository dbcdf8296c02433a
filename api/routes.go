package api

import (
	"context"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Whose key opens a route.
type access int

const (
	open access = iota
	applications
	operators
)

// A route is a method and a path, who may ask, and what is then done.
type route struct {
	method, path string
	name         string // in logs and metrics
	keys         access
	step         step
}

// routes are all there are.
func (s *Server) routes() []route {
	return []route{
		{"POST", "/send-code", "send-code", applications, steps(s.readSend, s.send, writeSent)},
		{"GET", "/mailboxes/:email", "mailbox", applications, steps(s.readMailbox, s.look, writeStanding)},
		{"GET", "/admin/mailboxes/:email", "admin-mailbox", operators, steps(s.readMailbox, s.inspect, writeInspection)},
		{"POST", "/admin/mailboxes/:email/reset", "admin-reset", operators, steps(s.readReset, s.reset, writeCleared)},
		{"GET", "/livez", "livez", open, steps(nothing, s.live, writeStatus)},
		{"GET", "/readyz", "readyz", open, steps(nothing, s.ready, writeStatus)},
		{"GET", "/metrics", "metrics", open, steps(nothing, s.measure, writePage)},
		{"GET", "/openapi.yaml", "openapi", open, steps(nothing, s.contract, writePage)},
		{"GET", "/docs", "docs", open, steps(nothing, s.page, writePage)},
	}
}

// nothing is the reader of routes that ask for nothing.
func nothing(*incoming) (struct{}, error) { return struct{}{}, nil }

// register gives the routes to Fiber. Every method of a known path is answered, with
// the method's route or with the methods there are.
func (s *Server) register(app *fiber.App) {
	all := s.routes()
	paths := map[string][]string{}
	for i := range all {
		r := &all[i]
		paths[r.path] = append(paths[r.path], r.method)
		app.Add(r.method, r.path, s.fiberHandler(r))
		if r.method == fiber.MethodGet {
			paths[r.path] = append(paths[r.path], fiber.MethodHead)
			app.Add(fiber.MethodHead, r.path, s.fiberHandler(r))
		}
	}
	for path, methods := range paths {
		methods = append(methods, fiber.MethodOptions)
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		for _, method := range fiber.DefaultMethods {
			if method == fiber.MethodOptions || !slices.Contains(methods, method) {
				app.Add(method, path, s.fiberHandler(otherMethod(method, path, allow)))
			}
		}
	}
	app.Use(s.elsewhere())
}

// fiberHandler is the seam to Fiber: it takes the path's parameter and goes on.
func (s *Server) fiberHandler(r *route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s.serve(r, c.Params("email"), c.Context())
		return nil
	}
}

// otherMethod is the route of a known path's methods that it does not have. OPTIONS
// gets the list without a complaint.
func otherMethod(method, path, allow string) *route {
	r := &route{method: method, path: path, name: "other-method"}
	if method == fiber.MethodOptions {
		r.step = func(_ context.Context, _ *call, _ *incoming, out *answer) error {
			out.status, out.allow = fiber.StatusNoContent, allow
			return nil
		}
		return r
	}
	r.step = refusal(&problem{kind: methodNotAllowed, allow: allow})
	return r
}

// refusal is a step that always ends in one problem.
func refusal(p *problem) step {
	return func(context.Context, *call, *incoming, *answer) error { return p }
}

// elsewhere answers the paths that no route has.
func (s *Server) elsewhere() fiber.Handler {
	if s.with.Fallback != nil {
		adapted := s.fallback(s.with.Fallback)
		return func(c *fiber.Ctx) error {
			adapted(c.Context())
			return nil
		}
	}
	return s.fiberHandler(&route{name: "none", step: refusal(&problem{kind: notFound})})
}

// knownMethods answers the methods that Fiber does not know, which it would refuse in
// words of its own.
func (s *Server) knownMethods(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	unknown := &route{name: "unknown-method", step: refusal(&problem{kind: methodUnknown})}
	return func(fast *fasthttp.RequestCtx) {
		if slices.Contains(fiber.DefaultMethods, string(fast.Method())) {
			next(fast)
			return
		}
		s.serve(unknown, "", fast)
	}
}

// admit checks the caller's key and returns its name. Where no keys are set, nobody is
// asked for one, and callers are who asks from this machine.
func (s *Server) admit(who access, header *fasthttp.RequestHeader) (name string, err error) {
	keys := s.with.APIKeys
	switch who {
	case open:
		return "", nil
	case operators:
		keys = s.with.AdminKeys
	}
	if keys.IsZero() {
		return "", fromHere(header)
	}
	secret, ok := bearer(header.Peek("Authorization"))
	if ok {
		name, ok = keys.find(secret)
	}
	if !ok {
		return "", &problem{kind: unauthorized}
	}
	return name, nil
}
