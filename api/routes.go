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

// What bounds how often a route is used: nothing here, Options.Lookups for each caller,
// Options.Countdowns for each address.
type bound int

const (
	unbounded bound = iota
	byCaller
	byVisitor
)

// Whether pages from anywhere may read a route's answers.
const (
	ownOrigin = false
	anyOrigin = true
)

// A route is a method and a path, who may ask, and what is then done.
type route struct {
	method, path string
	name         string // in logs and metrics
	keys         access
	bound        bound
	step         step
	anywhere     bool // ownOrigin or anyOrigin
}

// routes are all there are.
func (s *Server) routes() []route {
	all := []route{
		{"POST", "/send-code", "send-code", applications, unbounded, s.sendCode, ownOrigin},
		{"GET", "/mailboxes/:email", "mailbox", applications, byCaller, steps(s.readMailbox, s.look, writeSight), ownOrigin},
		{"POST", "/actions/:action/take", "action-take", applications, unbounded, steps(readTake, s.takeAction, writeActed), ownOrigin},
		{"POST", "/actions/:action/peek", "action-peek", applications, unbounded, steps(readPeek, s.peekAction, writeActed), ownOrigin},
		{"POST", "/actions/:action/release", "action-release", applications, unbounded, steps(readActionRelease, s.releaseAction, writeJSON), ownOrigin},
		{"GET", "/admin/mailboxes/:email", "admin-mailbox", operators, byCaller, steps(s.readMailbox, s.inspect, writeInspection), ownOrigin},
		{"POST", "/admin/mailboxes/:email/reset", "admin-reset", operators, byCaller, steps(s.readReset, s.reset, writeJSON), ownOrigin},
		{"POST", "/admin/actions/:action/reset", "admin-action-reset", operators, byCaller, steps(readActionReset, s.resetAction, writeJSON), ownOrigin},
		{"POST", "/admin/rules/:rule/peek", "admin-rule-peek", operators, byCaller, steps(s.readRule, s.peekRule, writeRuleSight), ownOrigin},
		{"POST", "/admin/rules/:rule/reset", "admin-rule-reset", operators, byCaller, steps(s.readRuleReset, s.resetRule, writeJSON), ownOrigin},
		{"GET", "/admin/figures", "admin-figures", operators, unbounded, steps(nothing, s.readFigures, writeJSON), ownOrigin},
		{"POST", "/admin/what-if", "admin-what-if", operators, byCaller, steps(s.readWhatIf, s.whatIf, writeJSON), ownOrigin},
		{"GET", "/admin", "console", open, unbounded, steps(nothing, s.showConsole, writeConsole), ownOrigin},
		{"GET", "/admin/console/:file", "console-part", open, unbounded, steps(readPartName, s.consolePart, writeConsole), ownOrigin},
		{"GET", "/livez", "livez", open, unbounded, steps(nothing, s.living, writeJSON), ownOrigin},
		{"GET", "/readyz", "readyz", open, unbounded, steps(nothing, s.ready, writeJSON), ownOrigin},
		{"GET", "/metrics", "metrics", open, unbounded, steps(nothing, s.measure, writePage), ownOrigin},
		{"GET", "/openapi.yaml", "openapi", open, unbounded, steps(nothing, s.contract, writePage), ownOrigin},
		{"GET", "/docs", "docs", open, unbounded, steps(nothing, s.page, writePage), ownOrigin},
		{"GET", "/countdown/:token", "countdown", open, byVisitor, steps(s.readCountdown, s.count, writeJSON), anyOrigin},
		{"GET", "/countdown.js", "countdown-script", open, unbounded, steps(readDownload, handsOut(&s.script), writePage), anyOrigin},
		{"GET", "/countdown.d.ts", "countdown-types", open, unbounded, steps(readDownload, handsOut(&s.types), writePage), anyOrigin},
	}
	if s.with.Codes != nil {
		all = append(all, route{"POST", "/verify-code", "verify-code", applications, unbounded, steps(s.readVerification, s.verify, writeJSON), ownOrigin})
	}
	if s.with.Fallback == nil {
		all = append(all, route{"GET", "/", "start", open, unbounded, start, ownOrigin})
	}
	return all
}

// opsRoutes are those of them that the listener of operations has.
func opsRoutes(all []route) (ops []route) {
	for _, r := range all {
		if slices.Contains([]string{"/livez", "/readyz", "/metrics"}, r.path) {
			ops = append(ops, r)
		}
	}
	return ops
}

// nothing is the reader of routes that ask for nothing.
func nothing(*incoming) (struct{}, error) { return struct{}{}, nil }

// register gives the routes to Fiber. Every method of a known path is answered, with
// the method's route or with the methods there are.
func (s *Server) register(app *fiber.App, all []route, elsewhere fiber.Handler) error {
	paths, anywhere := map[string][]string{}, map[string]bool{}
	for i := range all {
		r := &all[i]
		paths[r.path] = append(paths[r.path], r.method)
		anywhere[r.path] = r.anywhere
		handlers := s.handlers(r)
		app.Add(r.method, r.path, handlers...)
		if r.method == fiber.MethodGet {
			paths[r.path] = append(paths[r.path], fiber.MethodHead)
			app.Add(fiber.MethodHead, r.path, handlers...)
		}
	}
	for path, methods := range paths {
		methods = append(methods, fiber.MethodOptions)
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		for _, method := range fiber.DefaultMethods {
			if method == fiber.MethodOptions || !slices.Contains(methods, method) {
				app.Add(method, path, s.fiberHandler(otherMethod(method, path, allow, anywhere[path])))
			}
		}
	}
	app.Use(elsewhere)
	return nil
}

// handlers are what Fiber runs for a route, one after the other.
func (s *Server) handlers(r *route) []fiber.Handler {
	if first := s.bounded(r); first != nil {
		return []fiber.Handler{first, s.fiberHandler(r)}
	}
	return []fiber.Handler{s.fiberHandler(r)}
}

// fiberHandler is the seam to Fiber: it takes the path's parameter and goes on.
func (s *Server) fiberHandler(r *route) fiber.Handler {
	parameter := parameterOf(r.path)
	return func(c *fiber.Ctx) error {
		s.serve(r, c.Params(parameter), c.Context())
		return nil
	}
}

// parameterOf is the name of a path's parameter. No path has two.
func parameterOf(path string) string {
	_, after, _ := strings.Cut(path, ":")
	name, _, _ := strings.Cut(after, "/")
	return name
}

// otherMethod is the route of a known path's methods that it does not have. OPTIONS
// gets the list without a complaint.
func otherMethod(method, path, allow string, anywhere bool) *route {
	r := &route{method: method, path: path, name: "other-method", anywhere: anywhere}
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
	return s.fiberHandler(nowhere())
}

// nowhere is the route of the paths that there are not.
func nowhere() *route {
	return &route{name: "none", step: refusal(&problem{kind: notFound})}
}

// knownMethods answers the methods that Fiber does not know, which it would refuse in
// words of its own. They end the connection: what begins with none of them may well be
// the rest of something that was read to a wrong end.
func (s *Server) knownMethods(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	unknown := &route{name: "unknown-method", step: refusal(&problem{kind: methodUnknown})}
	return func(fast *fasthttp.RequestCtx) {
		if slices.Contains(fiber.DefaultMethods, string(fast.Method())) {
			next(fast)
			return
		}
		distrust(fast)
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
		return "", s.fromHere(header)
	}
	secret, ok := bearer(header.Peek("Authorization"))
	if ok {
		name, ok = keys.find(secret)
	}
	if !ok {
		return "", s.wrongKey(who, secret)
	}
	return name, nil
}

// wrongKey says so where a key opens the other routes.
func (s *Server) wrongKey(who access, secret []byte) *problem {
	p := &problem{kind: unauthorized}
	if _, found := s.with.APIKeys.find(secret); found && who == operators {
		p.detail = "This is the key of a back end. This route needs the key of an operator."
	} else if _, found := s.with.AdminKeys.find(secret); found && who == applications {
		p.detail = "This is the key of an operator. This route needs the key of a back end."
	}
	return p
}
