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

var tiers = []struct {
	name   string
	limit  int
	window time.Duration
}{{"minute", 1, time.Minute}, {"hour", 5, time.Hour}, {"day", 10, 24 * time.Hour}}

var (
	mu    sync.Mutex
	sends = map[string][]time.Time{}
	codes = map[string]string{}
	relay *email.Pool
)

// take admits a send and keeps its code, or returns the limit that was reached and how long to wait.
func take(mailbox, code string) (limit string, wait time.Duration) {
	mu.Lock()
	defer mu.Unlock()
	now, all := time.Now(), sends[mailbox]
	for _, t := range tiers {
		if len(all) >= t.limit {
			if left := t.window - now.Sub(all[len(all)-t.limit]); left > wait {
				limit, wait = t.name, left
			}
		}
	}
	if limit == "" {
		sends[mailbox], codes[mailbox] = append(all, now), code
	}
	return limit, wait
}

func send(c *fiber.Ctx) error {
	var request struct {
		Email string `json:"email"`
	}
	if err := c.BodyParser(&request); err != nil {
		return err
	}
	number, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return err
	}
	code, mailbox := fmt.Sprintf("%06d", number), strings.Clone(request.Email)
	if limit, wait := take(mailbox, code); limit != "" {
		return c.Status(fiber.StatusTooManyRequests).JSON(fiber.Map{"limit": limit, "wait_ms": wait.Milliseconds()})
	}
	fill := strings.NewReplacer("{{code}}", code, "{{email}}", mailbox)
	mail := &email.Email{
		From: "Acme <no-reply@acme.example>", To: []string{mailbox}, Subject: code + " is your code",
		Text: []byte(fill.Replace(text)), HTML: []byte(fill.Replace(html)),
	}
	if err := relay.Send(mail, 10*time.Second); err != nil {
		return err
	}
	return c.JSON(fiber.Map{"status": "sent", "email": mailbox})
}

func main() {
	var err error
	if relay, err = email.NewPool(os.Args[2], 8, nil); err == nil {
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		app.Post("/send-code", send)
		err = app.Listen(os.Args[1])
	}
	fmt.Fprintln(os.Stderr, "handmade:", err)
	os.Exit(1)
}
