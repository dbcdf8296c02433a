package api

import (
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/notme"
)

// routes registers all routes. A name is what logs and metrics call a route.
func (s *Server) routes(app *fiber.App) {
	public, backEnd, operator := s.admit(open), s.admit(applications), s.admit(operators)
	lookups, inspections := s.boundLookups(applications), s.boundLookups(operators)
	countdowns := s.bound("countdowns", "this address's countdowns", s.with.RateLimits.Countdowns, func(r *request) string { return network.KeyOf(r.From) })

	app.Post("/send-code", handler(s, s.sendCode, backEnd, readKey)).Name("send-code")
	app.Post("/verify-code", handler(s, s.verifyCode, backEnd)).Name("verify-code")
	app.Get("/mailboxes/:email", handler(s, s.lookUpMailbox, lookups, backEnd, s.readMailbox)).Name("mailbox")
	app.Post("/mailboxes/peek", handler(s, s.peekMailbox, lookups, backEnd)).Name("mailbox-peek")
	app.Post("/actions/:action/take", handler(s, s.takeAction, backEnd, readKey, readAction)).Name("action-take")
	app.Post("/actions/:action/peek", handler(s, s.peekAction, backEnd, readAction)).Name("action-peek")
	app.Post("/actions/:action/release", handler(s, s.releaseAction, backEnd, readAction)).Name("action-release")

	for _, hook := range s.with.Hooks {
		app.Post(hookPath(hook), s.takeHook).Name("hook-" + hook.Name())
	}

	app.Get("/admin/mailboxes/:email", handler(s, s.inspectMailbox, inspections, operator, s.readMailbox)).Name("admin-mailbox")
	app.Post("/admin/mailboxes/:email/reset", handler(s, s.resetMailbox, inspections, operator, s.readMailbox, s.auditReady, optionalBody)).Name("admin-reset")
	app.Post("/admin/actions/:action/reset", handler(s, s.resetAction, inspections, operator, readAction, s.auditReady)).Name("admin-action-reset")
	app.Post("/admin/rules/:rule/peek", handler(s, s.peekRule, inspections, operator, readRule)).Name("admin-rule-peek")
	app.Post("/admin/rules/:rule/reset", handler(s, s.resetRule, inspections, operator, readRule, s.auditReady)).Name("admin-rule-reset")
	app.Get("/admin/suppressions", handler(s, s.listSuppressions, operator)).Name("admin-suppressions")
	app.Put("/admin/suppressions/:email", handler(s, s.suppress, operator, s.readMailbox, s.auditReady, optionalBody)).Name("admin-suppress")
	app.Delete("/admin/suppressions/:email", handler(s, s.unsuppress, operator, s.readMailbox, s.auditReady)).Name("admin-unsuppress")
	app.Get("/admin/requests", handler(s, s.listRequests, ofAddress(inspections), operator)).Name("admin-requests")
	app.Get("/admin/requests/refused", handler(s, s.countRefused, operator)).Name("admin-refused")
	app.Get("/admin/requests/names", handler(s, s.countNames, operator)).Name("admin-names")
	app.Get("/admin/figures", handler(s, s.showFigures, operator)).Name("admin-figures")
	app.Post("/admin/what-if", handler(s, s.whatIf, inspections, operator, optionalBody)).Name("admin-what-if")

	app.Get("/admin", page(document(htmlType, s.consolePage), public)).Name("console")
	app.Get("/admin/console/:file", page(s.showConsoleFile, public)).Name("console-part")
	app.Get("/livez", page(s.showLive, public)).Name("livez")
	app.Get("/readyz", page(s.showReady, public)).Name("readyz")
	app.Get("/openapi.yaml", page(document("application/yaml", s.contract), public)).Name("openapi")
	app.Get("/openapi.json", page(document(jsonType, s.contractJSON), public)).Name("openapi")
	app.Get("/docs", page(document(htmlType, s.docsPage), public)).Name("docs")
	app.Get("/countdown/:token", handler(s, s.showCountdown, countdowns, public)).Name("countdown")
	app.Get(notme.Path+":token", page(s.notMePage(s.showNotMe), countdowns, public)).Name("not-me")
	app.Post(notme.Path+":token", page(s.notMePage(s.stopNotMe), countdowns, public)).Name("not-me-stop")
	app.Post(notme.Path+":token"+notMeUndo, page(s.notMePage(s.undoNotMe), countdowns, public)).Name("not-me-undo")
	app.Get("/countdown.js", page(component("text/javascript; charset=utf-8", "mailgate-countdown.js"), public)).Name("countdown-script")
	app.Get("/countdown.d.ts", page(component("application/typescript", "mailgate-countdown.d.ts"), public)).Name("countdown-types")
	if !s.with.Ops {
		app.Get("/metrics", page(s.showMetrics, public)).Name("metrics")
	}
	app.Get("/", page(s.showStart, public)).Name("start")
}
