// Command handmade is a service that sends codes as one is written by hand: Fiber, a pool of eight
// connections to the relay, and tiers in a map, in Redis or in SQLite.
//
//	handmade 127.0.0.1:8080 127.0.0.1:25
//	handmade 127.0.0.1:8080 127.0.0.1:25 redis 127.0.0.1:6379
//	handmade 127.0.0.1:8080 127.0.0.1:25 sqlite history.db
package main

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"math/big"
	"os"
	"strings"
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

// take admits a send and keeps its code, or returns the limit that was reached and how long to wait.
type take func(mailbox, code string) (limit string, wait time.Duration, err error)

var (
	admit take
	relay *email.Pool
)

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
	limit, wait, err := admit(mailbox, code)
	if err != nil {
		return err
	}
	if limit != "" {
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

// open returns the tiers in memory, in Redis at an address, or in SQLite in a file.
func open(store []string) (take, error) {
	switch {
	case len(store) == 0:
		return inMemory(), nil
	case store[0] == "redis":
		return inRedis(store[1]), nil
	}
	return inSQLite(store[1])
}

func serve(addr, smtp string, store []string) (err error) {
	if admit, err = open(store); err != nil {
		return err
	}
	if relay, err = email.NewPool(smtp, 8, nil); err != nil {
		return err
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/send-code", send)
	return app.Listen(addr)
}

func main() {
	fmt.Fprintln(os.Stderr, "handmade:", serve(os.Args[1], os.Args[2], os.Args[3:]))
	os.Exit(1)
}
