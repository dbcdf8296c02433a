package api

import "github.com/gofiber/fiber/v2"

// routes registers all routes. A name is what logs and metrics call a route.
func (s *Server) routes(app *fiber.App) {
	public, backEnd, operator := s.admit(open), s.admit(applications), s.admit(operators)
	lookups, inspections, countdowns := s.boundLookups(applications), s.boundLookups(operators), s.boundCountdowns()

	app.Post("/send-code", backEnd, handler(s, s.sendCode, readKey)).Name("send-code")
	app.Post("/verify-code", backEnd, handler(s, s.verifyCode)).Name("verify-code")
	app.Get("/mailboxes/:email", lookups, backEnd, handler(s, s.lookUpMailbox, s.readMailbox)).Name("mailbox")
	app.Post("/mailboxes/peek", lookups, backEnd, handler(s, s.peekMailbox)).Name("mailbox-peek")
	app.Post("/actions/:action/take", backEnd, handler(s, s.takeAction, readKey, readAction)).Name("action-take")
	app.Post("/actions/:action/peek", backEnd, handler(s, s.peekAction, readAction)).Name("action-peek")
	app.Post("/actions/:action/release", backEnd, handler(s, s.releaseAction, readAction)).Name("action-release")

	app.Get("/admin/mailboxes/:email", inspections, operator, handler(s, s.inspectMailbox, s.readMailbox)).Name("admin-mailbox")
	app.Post("/admin/mailboxes/:email/reset", inspections, operator, handler(s, s.resetMailbox, s.readMailbox, optionalBody)).Name("admin-reset")
	app.Post("/admin/actions/:action/reset", inspections, operator, handler(s, s.resetAction, readAction)).Name("admin-action-reset")
	app.Post("/admin/rules/:rule/peek", inspections, operator, handler(s, s.peekRule, readRule)).Name("admin-rule-peek")
	app.Post("/admin/rules/:rule/reset", inspections, operator, handler(s, s.resetRule, readRule)).Name("admin-rule-reset")
	app.Get("/admin/figures", operator, handler(s, s.showFigures)).Name("admin-figures")
	app.Post("/admin/what-if", inspections, operator, handler(s, s.tryTiers)).Name("admin-what-if")

	app.Get("/admin", public, s.showConsole).Name("console")
	app.Get("/admin/console/:file", public, s.showConsoleFile).Name("console-part")
	app.Get("/livez", public, s.showLive).Name("livez")
	app.Get("/readyz", public, s.showReady).Name("readyz")
	app.Get("/openapi.yaml", public, s.showContract).Name("openapi")
	app.Get("/openapi.json", public, s.showContractJSON).Name("openapi")
	app.Get("/docs", public, s.showDocs).Name("docs")
	app.Get("/countdown/:token", countdowns, public, handler(s, s.showCountdown)).Name("countdown")
	app.Get("/countdown.js", public, s.serveScript).Name("countdown-script")
	app.Get("/countdown.d.ts", public, s.serveTypes).Name("countdown-types")
	if !s.with.Ops {
		app.Get("/metrics", public, s.showMetrics).Name("metrics")
	}
	if s.with.Fallback == nil {
		app.Get("/", public, s.showStart).Name("start")
	}
}

// opsRoutes adds the routes of the operations listener. The operator controls which clients reach
// it, so no share bounds them.
func (s *Server) opsRoutes(app *fiber.App) {
	app.Get("/livez", s.showLive).Name("livez")
	app.Get("/readyz", s.showReady).Name("readyz")
	app.Get("/metrics", s.showMetrics).Name("metrics")
}
