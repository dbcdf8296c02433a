package api_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

const deniedBody = `{"email":"alice@example.com","code":"482913"}`

// BenchmarkDenied is a denied POST /send-code over a connection in memory, key, checks,
// decision, headers and all. BenchmarkBareFiber is what Fiber alone needs for the same
// fields without any of that; the first should not be much slower than the second.
func BenchmarkDenied(b *testing.B) { benchmarkDenied(b, nil) }

// BenchmarkDeniedLogged is the same with a line of JSON in the log for each request.
func BenchmarkDeniedLogged(b *testing.B) {
	benchmarkDenied(b, slog.New(slog.NewJSONHandler(io.Discard, nil)))
}

func benchmarkDenied(b *testing.B, log *slog.Logger) {
	r := newRig(b, setup{options: func(o *api.Options) { o.Log = quiet() }})
	r.send("alice@example.com").is(b, 200, "")
	listener := fasthttputil.NewInmemoryListener()
	server := must(api.New(api.Options{
		Live: api.Live{Rules: onlyMailbox(b, r.limiter), Composer: newComposer(b)}, Relay: newGated(),
		Identity: must(address.NewIdentity(true))(b), APIKeys: must(api.ParseKeys("shop:" + appKey))(b),
		Log: log,
	}))(b)
	go server.Serve(listener)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Shutdown(ctx)
	})
	benchmarkPost(b, listener, 429)
}

// BenchmarkBareFiber decodes the body into a struct and answers with a map, in a
// default Fiber application.
func BenchmarkBareFiber(b *testing.B) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/send-code", func(c *fiber.Ctx) error {
		var request struct {
			Email string `json:"email"`
			Code  string `json:"code"`
		}
		if err := c.BodyParser(&request); err != nil {
			return err
		}
		tier := func(name string, limit, window, remaining, wait int64) map[string]any {
			return map[string]any{"name": name, "limit": limit, "window_ms": window, "remaining": remaining, "wait_ms": wait}
		}
		return c.Status(429).JSON(map[string]any{
			"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota exceeded", "status": 429,
			"detail": "The limit minute of this mailbox is reached. The next mail may be sent in 55 s.", "rule": "mailbox",
			"limit": "minute", "wait_ms": 54321, "retry_at": "2026-11-20T12:01:00.000Z", "server_time": "2026-11-20T12:00:05.679Z",
			"limits":   []any{tier("minute", 1, 60000, 0, 54321), tier("hour", 5, 3600000, 4, 0), tier("day", 10, 86400000, 9, 0)},
			"degraded": false, "violated-policies": []string{"minute"},
		})
	})
	listener := fasthttputil.NewInmemoryListener()
	go app.Listener(listener)
	b.Cleanup(func() { app.ShutdownWithTimeout(time.Second) })
	benchmarkPost(b, listener, 429)
}

func benchmarkPost(b *testing.B, listener *fasthttputil.InmemoryListener, status int) {
	client := &fasthttp.HostClient{Addr: "x", Dial: func(string) (net.Conn, error) { return listener.Dial() }}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		request.SetRequestURI("http://x/send-code")
		request.Header.SetMethod("POST")
		request.Header.SetContentType("application/json")
		request.Header.Set("Authorization", "Bearer "+appKey)
		request.SetBodyString(deniedBody)
		for pb.Next() {
			if err := client.Do(request, response); err != nil {
				b.Error(err)
				return
			}
			if response.StatusCode() != status || !strings.Contains(string(response.Body()), `"limit":"minute"`) {
				b.Errorf("%d %s", response.StatusCode(), response.Body())
				return
			}
		}
	})
}
