// Command handmade is a service that sends codes as one is written by hand: Fiber, a map with a
// mutex and a pool of eight connections to the relay. It keeps nothing on disk.
package main

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/jordan-wright/email"
)

//go:embed mail.txt
var text string

//go:embed mail.html
var html string

type tier struct {
	Name   string        `json:"name"`
	Limit  int           `json:"limit"`
	Window time.Duration `json:"-"`
}

var tiers = []tier{{"minute", 1, time.Minute}, {"hour", 5, time.Hour}, {"day", 10, 24 * time.Hour}}

// mailboxes is what was sent to each mailbox: when, and the last code.
type mailboxes struct {
	mu    sync.Mutex
	sends map[string][]time.Time
	codes map[string]string
}

// take admits a send, or returns the limit that was reached and how long to wait.
func (m *mailboxes) take(mailbox, code string) (limit string, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, sends := time.Now(), m.sends[mailbox]
	for _, t := range tiers {
		if len(sends) < t.Limit {
			continue
		}
		if left := t.Window - now.Sub(sends[len(sends)-t.Limit]); left > wait {
			limit, wait = t.Name, left
		}
	}
	if wait > 0 {
		return limit, wait
	}
	m.sends[mailbox], m.codes[mailbox] = append(sends, now), code
	return "", 0
}

type request struct {
	Email string `json:"email"`
}

type service struct {
	mailboxes mailboxes
	relay     *email.Pool
}

func (s *service) send(c *fiber.Ctx) error {
	var r request
	if err := c.BodyParser(&r); err != nil {
		return err
	}
	number, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return err
	}
	code, mailbox := fmt.Sprintf("%06d", number), strings.Clone(r.Email)
	if limit, wait := s.mailboxes.take(mailbox, code); limit != "" {
		return c.Status(fiber.StatusTooManyRequests).JSON(fiber.Map{"limit": limit, "wait_ms": wait.Milliseconds()})
	}
	fill := strings.NewReplacer("{{code}}", code, "{{email}}", mailbox)
	mail := &email.Email{
		From: "Acme <no-reply@acme.example>", To: []string{mailbox}, Subject: code + " is your code",
		Text: []byte(fill.Replace(text)), HTML: []byte(fill.Replace(html)),
	}
	if err := s.relay.Send(mail, 10*time.Second); err != nil {
		return err
	}
	return c.JSON(fiber.Map{"status": "sent", "email": mailbox, "limits": tiers})
}

func main() {
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "handmade:", err)
		os.Exit(1)
	}
}

func serve(addr, relay string) error {
	pool, err := email.NewPool(relay, 8, nil)
	if err != nil {
		return err
	}
	s := &service{mailboxes: mailboxes{sends: map[string][]time.Time{}, codes: map[string]string{}}, relay: pool}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/send-code", s.send)
	return app.Listen(addr)
}
