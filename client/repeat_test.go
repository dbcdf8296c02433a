package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/servertest"
)

// What is asked again: everything where that is safe, and nothing else.
func TestRepeating(t *testing.T) {
	date := map[string]string{"Date": "Fri, 20 Nov 2026 12:00:00 GMT", "Retry-After": "Fri, 20 Nov 2026 12:00:02 GMT"}
	const harmless, counting = "send mailbox take peek release inspect", "verify reset reset action reset rule"
	tests := []struct {
		name  string
		calls string
		first line
		again bool
		kind  string // where it is not asked again
	}{
		{"a broken connection", harmless, line{}, true, ""},
		{"a broken connection while counting", counting, line{}, false, "no answer"},
		{"mailgate cannot now", harmless + " reset reset action reset rule", problem(503, "store-unavailable", "Retry-After", "1"), true, ""},
		{"mailgate cannot now, and may have counted it", "verify", problem(503, "store-unavailable", "Retry-After", "1"), false, "store-unavailable"},
		{"mailgate has too much to do", harmless + " " + counting, problem(503, "busy", "Retry-After", "1"), true, ""},
		{"mailgate cannot for long", harmless + " " + counting, problem(503, "relay-unavailable", "Retry-After", "6"), false, "relay-unavailable"},
		{"a proxy cannot now", harmless, foreign(503, map[string]string{"Retry-After": "1"}), true, ""},
		{"a proxy cannot until a date", harmless, foreign(503, date), true, ""},
		{"a proxy cannot now while counting", counting, foreign(503, map[string]string{"Retry-After": "1"}), false, "foreign"},
		{"a proxy's bad gateway", harmless, foreign(502, nil), true, ""},
		{"a proxy's bad gateway while counting", counting, foreign(502, nil), false, "foreign"},
		{"a proxy's patience is over", harmless, foreign(504, nil), true, ""},
		{"a proxy's patience is over while counting", counting, foreign(504, nil), false, "foreign"},
		{"the first is still at work", "send", problem(409, "idempotency-in-flight", "Retry-After", "1"), true, ""},
		{"another conflict", "send", foreign(409, nil), false, "foreign"},
		{"nobody knows", "send", problem(504, "delivery-unknown"), false, "delivery-unknown"},
		{"a limit", harmless + " " + counting, line{status: 429, body: waitBody, header: map[string]string{"Retry-After": "1"}}, false, "wait"},
		{"a proxy's limit", harmless + " " + counting, foreign(429, map[string]string{"Retry-After": "1"}), false, "foreign"},
		{"a fault", harmless + " " + counting, problem(500, "internal"), false, "internal"},
		{"a wrong key", harmless + " " + counting, problem(401, "unauthorized"), false, "unauthorized"},
		{"another's key", "send", problem(422, "idempotency-mismatch"), false, "idempotency-mismatch"},
		{"too slow", "send", problem(408, "request-timeout"), false, "request-timeout"},
		{"a redirect", harmless, foreign(307, map[string]string{"Location": "/"}), false, "foreign"},
		{"a page", harmless + " " + counting, foreign(200, nil), false, "unreadable"},
		{"a mailbox, and not what was sent to it", "inspect", line{status: 200, body: `{"email":"` + email + `","rule":null,` + standing + `}`}, false, "unreadable"},
	}
	for _, tt := range tests {
		for _, name := range callNames() {
			if !strings.Contains(" "+tt.calls+" ", " "+name+" ") {
				continue
			}
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				server := play(t, tt.first, problem(401, "the-end"))
				c, p := asking(t, server.URL, client.Options{})
				err := calls[name](t.Context(), c)
				want, kind := 1, tt.kind
				if tt.again {
					want, kind = 2, "the-end"
				}
				if got := server.questions(); len(got) != want || len(p.all) != want-1 || kindOf(err) != kind {
					t.Fatalf("asked %d times with pauses %v, and it was %q: %v", len(got), p.all, kindOf(err), err)
				}
			})
		}
	}
}

// Every repetition is the same request, to the byte, and every call another one.
func TestRepetitionsAreTheSame(t *testing.T) {
	server := play(t, line{}, foreign(502, nil), problem(409, "idempotency-in-flight"), line{status: 200, body: sentBody})
	c, _ := asking(t, server.URL, client.Options{})
	if err := calls["send"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := calls["send"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	all := server.questions()
	if len(all) != 5 {
		t.Fatalf("%d questions", len(all))
	}
	names := map[string]int{}
	for _, q := range all {
		names[q.header.Get("Idempotency-Key")]++
		if q.body != all[0].body || q.path != "/send-code" || q.header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%+v", q)
		}
	}
	if first := all[0].header.Get("Idempotency-Key"); names[first] != 4 || len(names) != 2 || len(first) < 20 {
		t.Errorf("the keys were %v", names)
	}
}

// What mails or takes has an idempotency key, and nothing else has.
func TestWhatHasAKey(t *testing.T) {
	for _, name := range callNames() {
		server := play(t, problem(401, "unauthorized"))
		c, _ := asking(t, server.URL, client.Options{})
		_ = calls[name](t.Context(), c)
		for _, q := range server.questions() {
			if has := q.header.Get("Idempotency-Key") != ""; has != (name == "send" || name == "take") {
				t.Errorf("%s: a key %v", name, has)
			}
		}
	}
}

// A pause doubles, half of it is chance, and a Retry-After is waited for.
func TestPauses(t *testing.T) {
	lines := []line{line{}, foreign(502, nil), problem(503, "busy", "Retry-After", "2"), foreign(503, map[string]string{
		"Date": "Fri, 20 Nov 2026 12:00:00 GMT", "Retry-After": "Fri, 20 Nov 2026 12:00:01 GMT"}), line{}}
	server := play(t, lines...)
	// On a connection that was kept, net/http might repeat once by itself.
	fresh := &http.Transport{DisableKeepAlives: true}
	c, p := asking(t, server.URL, client.Options{Attempts: 7, MaxPause: 3 * time.Second, Transport: fresh})
	if err := calls["send"](t.Context(), c); kindOf(err) != "no answer" {
		t.Fatal(err)
	}
	most := []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3 * time.Second, 3 * time.Second}
	asked := []time.Duration{0, 0, 2 * time.Second, time.Second, 0, 0}
	if len(p.all) != len(most) || len(server.questions()) != 7 {
		t.Fatalf("%d questions with pauses %v", len(server.questions()), p.all)
	}
	for i, d := range p.all {
		if d < asked[i]+most[i]/2 || d > asked[i]+most[i] {
			t.Errorf("pause %d was %v, want %v and half to all of %v", i, d, asked[i], most[i])
		}
	}
}

// Many clients that fail together do not pause alike.
func TestPausesDiffer(t *testing.T) {
	server := play(t, line{})
	seen := map[time.Duration]bool{}
	for range 20 {
		c, p := asking(t, server.URL, client.Options{Attempts: 2})
		_ = calls["peek"](t.Context(), c)
		seen[p.all[0]] = true
	}
	if len(seen) < 10 {
		t.Errorf("20 pauses were %v", seen)
	}
}

// Attempts bounds them, and one is one. However many there are, each waits for the next.
func TestAttempts(t *testing.T) {
	for attempts, want := range map[int]int{0: 4, 1: 1, 3: 3, 70: 70} {
		server := play(t, foreign(502, nil))
		c, p := asking(t, server.URL, client.Options{Attempts: attempts})
		if err := calls["send"](t.Context(), c); kindOf(err) != "foreign" || len(server.questions()) != want {
			t.Errorf("Attempts %d: asked %d times: %v", attempts, len(server.questions()), err)
		}
		if len(p.all) > 0 && slices.Min(p.all) < 100*time.Millisecond {
			t.Errorf("Attempts %d: pauses of %v", attempts, p.all)
		}
	}
}

// Where the context ends in a pause, or would, or just before one, the error is both: that, and what the last
// attempt ended with. Nothing is asked afterwards.
func TestTheCallersTimeIsOver(t *testing.T) {
	server := play(t, problem(503, "busy", "Retry-After", "1"))
	cancelled, cancel := context.WithCancel(t.Context())
	c, _ := asking(t, server.URL, client.Options{Pause: func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}})
	if err := calls["send"](cancelled, c); !errors.Is(err, context.Canceled) || kindOf(err) != "busy" {
		t.Errorf("cancelled in a pause: %v", err)
	}
	cancelled, cancel = context.WithCancel(t.Context())
	answers := always(503, `{"type":"urn:mailgate:problem:busy"}`, "1")
	c, _ = asking(t, server.URL, client.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		cancel()
		return answers(r)
	})})
	if err := calls["send"](cancelled, c); !errors.Is(err, context.Canceled) || kindOf(err) != "busy" {
		t.Errorf("cancelled as the answer came: %v", err)
	}

	// A minute is far from over, and a pause that is longer is not even begun.
	longer := play(t, problem(503, "busy", "Retry-After", "100"))
	patient, err := client.New(longer.URL, key, client.Options{MaxPause: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(patient.CloseIdleConnections)
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := calls["send"](soon, patient); !errors.Is(err, context.DeadlineExceeded) || kindOf(err) != "busy" {
		t.Errorf("too little time for a pause: %v", err)
	}
	if len(server.questions()) != 1 || len(longer.questions()) != 1 {
		t.Errorf("asked %d and %d times", len(server.questions()), len(longer.questions()))
	}
}

// A caller who gives up while an attempt is made is not paused for.
func TestTheCallerGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	silent := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-over
	}))
	defer close(over)
	c, p := asking(t, silent, client.Options{})
	if err := calls["send"](ctx, c); !errors.Is(err, context.Canceled) || kindOf(err) != "no answer" || len(p.all) > 0 || strings.Contains(err.Error(), "again") {
		t.Errorf("%d pauses: %v", len(p.all), err)
	}
}

// The pause by the system's clock does pause, and ends with the context.
func TestTheSystemsPause(t *testing.T) {
	server := play(t, foreign(502, nil), line{status: 200, body: sentBody})
	c, err := client.New(server.URL, key, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	began := time.Now()
	if err := calls["send"](t.Context(), c); err != nil || time.Since(began) < 100*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(began), err)
	}

	down := play(t, problem(503, "busy", "Retry-After", "3600"))
	patient, err := client.New(down.URL, key, client.Options{MaxPause: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(patient.CloseIdleConnections)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- calls["send"](ctx, patient) }()
	servertest.Eventually(t, "the first question", func() bool { return len(down.questions()) > 0 })
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// An attempt that takes too long is one that nobody answered; the next is made.
func TestAnAttemptThatTakesTooLong(t *testing.T) {
	hang := make(chan struct{})
	server := play(t, line{status: 200, body: sentBody})
	var asked atomic.Int32
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			<-hang
			panic(http.ErrAbortHandler)
		}
		server.ServeHTTP(w, r)
	})
	url := serve(t, slow)
	t.Cleanup(func() { close(hang) })
	c, _ := asking(t, url, client.Options{Timeout: time.Second})
	if err := calls["send"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
}
