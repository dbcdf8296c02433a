package main

import (
	"context"

	"github.com/gofiber/fiber/v2"
)

// The bare handlers, and what each makes its answer of.
const (
	bareMap    = "bare Fiber, a map"
	bareStruct = "bare Fiber, a struct"
	bareText   = "bare Fiber, fixed text"
)

// withBare serves all of them, each from a server of its own, and hands over their
// addresses.
func withBare(use func(addrs map[string]string) error) error {
	addrs := map[string]string{}
	next := func() error { return use(addrs) }
	for name, handler := range map[string]fiber.Handler{
		bareMap:    func(c *fiber.Ctx) error { return bareAnswer(c, mapProblem) },
		bareStruct: func(c *fiber.Ctx) error { return bareAnswer(c, structProblem) },
		bareText:   func(c *fiber.Ctx) error { return c.Status(429).SendString(fixedProblem) },
	} {
		inner := next
		next = func() error {
			app := newBare(handler)
			stop := func(context.Context) error { return app.ShutdownWithTimeout(patience) }
			return serving(app.Listener, stop, func(addr string) error {
				addrs[name] = addr
				return inner()
			})
		}
	}
	return next()
}

func newBare(handler fiber.Handler) *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/send-code", handler)
	return app
}

// bareRequest is the body of POST /send-code.
type bareRequest struct {
	Email    string            `json:"email"`
	Code     string            `json:"code"`
	Template string            `json:"template"`
	Locale   string            `json:"locale"`
	ClientIP string            `json:"client_ip"`
	Data     map[string]string `json:"data"`
}

func bareAnswer[Answer any](c *fiber.Ctx, answer func() Answer) error {
	var request bareRequest
	if err := c.BodyParser(&request); err != nil {
		return err
	}
	return c.Status(429).JSON(answer())
}

// What all of them answer, whoever asks.
const (
	quotaType   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaTitle  = "The quota is exceeded"
	quotaDetail = "The limit hour of this mailbox is reached. The next mail may be sent in 55 min 56 s."
	quotaRetry  = "2026-11-20T12:55:56.000Z"
	quotaNow    = "2026-11-20T12:00:00.000Z"
	quotaWait   = 3_356_000
	quotaToken  = "AaILFVOauihDx8DwFg2L8OONvB8xaVEKycUxdiGg-TMRalwU7wgOd5_9__zf4xU0eZZ-0-uuH1EarRGgzv5HrxgHh14siAsVShL_eS_CIl_wWx6MuqGlBNCzisMOYMRitosPOGOiDPTl"
)

func mapProblem() fiber.Map {
	return fiber.Map{
		"type": quotaType, "title": quotaTitle, "status": 429, "detail": quotaDetail,
		"rule": "mailbox", "limit": "hour", "wait_ms": quotaWait, "retry_at": quotaRetry, "server_time": quotaNow,
		"limits": []fiber.Map{
			{"name": "minute", "limit": 1, "window_ms": 60_000, "remaining": 0, "wait_ms": 60_000},
			{"name": "hour", "limit": 5, "window_ms": 3_600_000, "remaining": 0, "wait_ms": quotaWait},
			{"name": "day", "limit": 10, "window_ms": 86_400_000, "remaining": 5, "wait_ms": 0},
		},
		"degraded": false, "countdown": quotaToken, "violated-policies": []string{"minute", "hour"},
	}
}

type bareProblem struct {
	Type       string      `json:"type"`
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Detail     string      `json:"detail"`
	Rule       string      `json:"rule"`
	Limit      string      `json:"limit"`
	Wait       int64       `json:"wait_ms"`
	RetryAt    string      `json:"retry_at"`
	ServerTime string      `json:"server_time"`
	Limits     []bareLimit `json:"limits"`
	Degraded   bool        `json:"degraded"`
	Countdown  string      `json:"countdown"`
	Violated   []string    `json:"violated-policies"`
}

type bareLimit struct {
	Name      string `json:"name"`
	Limit     int    `json:"limit"`
	Window    int64  `json:"window_ms"`
	Remaining int    `json:"remaining"`
	Wait      int64  `json:"wait_ms"`
}

func structProblem() *bareProblem {
	return &bareProblem{
		Type: quotaType, Title: quotaTitle, Status: 429, Detail: quotaDetail,
		Rule: "mailbox", Limit: "hour", Wait: quotaWait, RetryAt: quotaRetry, ServerTime: quotaNow,
		Limits: []bareLimit{
			{"minute", 1, 60_000, 0, 60_000},
			{"hour", 5, 3_600_000, 0, quotaWait},
			{"day", 10, 86_400_000, 5, 0},
		},
		Countdown: quotaToken, Violated: []string{"minute", "hour"},
	}
}

// fixedProblem is as long as the answers are.
const fixedProblem = `{"type":"` + quotaType + `","title":"` + quotaTitle + `","status":429,"detail":"` + quotaDetail +
	`","rule":"mailbox","limit":"hour","wait_ms":3356000,"retry_at":"` + quotaRetry + `","server_time":"` + quotaNow +
	`","limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":0,"wait_ms":60000},` +
	`{"name":"hour","limit":5,"window_ms":3600000,"remaining":0,"wait_ms":3356000},` +
	`{"name":"day","limit":10,"window_ms":86400000,"remaining":5,"wait_ms":0}],` +
	`"degraded":false,"countdown":"` + quotaToken + `","violated-policies":["minute","hour"]}`
