// Command bare answers every POST /send-code with the same refusal. It parses the body and
// answers the fields that mailgate answers, and does nothing else.
package main

import (
	"fmt"
	"os"

	"github.com/gofiber/fiber/v2"
)

type request struct {
	Email    string            `json:"email"`
	Code     string            `json:"code"`
	Template string            `json:"template"`
	Locale   string            `json:"locale"`
	ClientIP string            `json:"client_ip"`
	Data     map[string]string `json:"data"`
}

type refusal struct {
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Detail     string   `json:"detail"`
	Rule       string   `json:"rule"`
	Limit      string   `json:"limit"`
	Wait       int64    `json:"wait_ms"`
	RetryAt    string   `json:"retry_at"`
	ServerTime string   `json:"server_time"`
	Limits     []limit  `json:"limits"`
	Degraded   bool     `json:"degraded"`
	Countdown  string   `json:"countdown"`
	Violated   []string `json:"violated-policies"`
}

type limit struct {
	Name      string `json:"name"`
	Limit     int    `json:"limit"`
	Window    int64  `json:"window_ms"`
	Remaining int    `json:"remaining"`
	Wait      int64  `json:"wait_ms"`
}

func refuse(c *fiber.Ctx) error {
	if err := c.BodyParser(new(request)); err != nil {
		return err
	}
	return c.Status(fiber.StatusTooManyRequests).JSON(refusal{
		"https://iana.org/assignments/http-problem-types#quota-exceeded", "Quota exceeded", fiber.StatusTooManyRequests,
		"The minute limit of this mailbox is reached. Try again in 59 s.",
		"mailbox", "minute", 59_000, "2026-11-20T12:55:56.000Z", "2026-11-20T12:54:57.000Z",
		[]limit{{"minute", 1, 60_000, 0, 59_000}, {"hour", 5, 3_600_000, 4, 0}, {"day", 10, 86_400_000, 9, 0}},
		false, "AaILFVOauihDx8DwFg2L8OONvB8xaVEKycUxdiGg-TMRalwU7wgOd5_9__zf4xU0eZZ-0-uuH1EarRGgzv5HrxgHh14siAsVShL_eS_CIl_wWx6MuqGlBNCzisMOYMRitosPOGOiDPTl",
		[]string{"minute"},
	})
}

func main() {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/send-code", refuse)
	fmt.Fprintln(os.Stderr, "bare:", app.Listen(os.Args[1]))
	os.Exit(1)
}
