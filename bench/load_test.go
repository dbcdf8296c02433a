package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"
)

// Every request arrives whole, asks for the mailbox it should, and comes over one of
// the connections that were ordered; a wrong status ends a round and nothing else.
func TestLoad(t *testing.T) {
	var mu sync.Mutex
	asked, from := map[string]int{}, map[string]bool{}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/send-code", func(c *fiber.Ctx) error {
		var request bareRequest
		if err := c.BodyParser(&request); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		asked[strings.Clone(request.Email)]++
		from[c.Context().RemoteAddr().String()] = true
		if c.Get("Authorization") != "Bearer "+apiKey {
			return c.SendStatus(401)
		}
		return c.SendStatus(200)
	})
	err := serving(app.Listener, app.ShutdownWithContext, func(addr string) error {
		o := order{Addr: addr, Connections: 4, Requests: 100, From: "user", First: 7, Mailboxes: 25, Status: 200}
		wrong := o
		wrong.Status = 429
		for i, done := range carriedOut(t, o, wrong, o) {
			if failed := i == 1; failed != (done.Trouble != "") || failed == (done.Nanoseconds > 0) {
				t.Errorf("order %d: %+v", i, done)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 25 || len(from) != 4 {
		t.Errorf("%d mailboxes over %d connections, want 25 over 4", len(asked), len(from))
	}
	for i := 7; i < 32; i++ {
		if n := asked[mailbox("user", i)]; n < 8 {
			t.Errorf("mailbox %d was asked for %d times, want 4 in each good round", i, n)
		}
	}
}

// carriedOut gives the orders to a load in this process.
func carriedOut(t *testing.T, orders ...order) (all []outcome) {
	t.Helper()
	in, out := io.Pipe()
	ended := make(chan error, 1)
	var text strings.Builder
	for _, o := range orders {
		if err := json.NewEncoder(&text).Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		err := beLoad(strings.NewReader(text.String()), out)
		out.CloseWithError(err)
		ended <- err
	}()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var done outcome
		if err := json.Unmarshal(lines.Bytes(), &done); err != nil {
			t.Fatal(err)
		}
		all = append(all, done)
	}
	if err := <-ended; err != nil || len(all) != len(orders) {
		t.Fatalf("%d outcomes, want %d: %v", len(all), len(orders), err)
	}
	return all
}
