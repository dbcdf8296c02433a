package web_test

import (
	_ "embed"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// strictPolicy is the strictest that a page with a script and requests can have.
const strictPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; base-uri 'none'; " +
	"form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed testdata/recorder.js
var recorder string

const (
	beside = `<form><input id="code"><button id="resend">Send again</button></form>
<mailgate-countdown for="resend"></mailgate-countdown>`
)

// with is the page of beside with these attributes on the element.
func with(attributes string) string {
	return strings.Replace(beside, `for="resend"`, `for="resend" `+attributes, 1)
}

// A site serves a page with the countdown, and answers GET /countdown/{token} as the test says.
type site struct {
	URL string

	mu     sync.Mutex
	body   string
	cache  string
	status int
	answer string        // of GET /countdown; none breaks the connection
	gate   chan struct{} // while set, answers wait until it is closed
	asked  []string      // tokens
}

// newSite opens a page with the countdown, whose time the test controls.
func newSite(t *testing.T, body string) (*site, *tab) {
	t.Helper()
	v := newVisitor(t, timeMachine)
	p := &site{body: body, status: http.StatusOK}
	serve := func(contentType, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, text)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.page)
	mux.HandleFunc("GET /countdown/{token}", p.countdown)
	mux.HandleFunc("GET /mailgate-countdown.js", serve("text/javascript", string(must.Have(fs.ReadFile(web.FS(), "mailgate-countdown.js")))))
	mux.HandleFunc("GET /recorder.js", serve("text/javascript", recorder))
	mux.HandleFunc("GET /elsewhere", serve("text/html", `<!doctype html><title>Elsewhere</title><link rel="icon" href="data:,"><p>Elsewhere`))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.URL = server.URL
	v.visit(p.URL)
	return p, v
}

func (p *site) page(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", strictPolicy)
	if p.cache != "" {
		w.Header().Set("Cache-Control", p.cache)
	}
	fmt.Fprintf(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Check your email</title>
<script src="/recorder.js"></script><script type="module" src="/mailgate-countdown.js"></script></head><body>%s</body></html>`, p.body)
}

func (p *site) countdown(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.PathValue("token"))
	gate := p.gate
	p.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
		}
	}
	p.mu.Lock()
	answer, status := p.answer, p.status
	p.mu.Unlock()
	if answer == "" {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprint(w, answer)
}

// shows replaces the page and opens it.
func (p *site) shows(v *tab, body string) {
	v.t.Helper()
	p.mu.Lock()
	p.body = body
	p.mu.Unlock()
	v.visit(p.URL)
}

// says sets what GET /countdown answers from now on.
func (p *site) says(status int, answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.answer = status, answer
}

// hesitates keeps answers back until the returned function is called.
func (p *site) hesitates() (goOn func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = gate
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gate = nil
		close(gate)
	}
}

// tokens are those that were asked for, in order.
func (p *site) tokens() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, " ")
}

func (p *site) asks() int { return len(strings.Fields(p.tokens())) }

const tiers = `[{"name":"minute","limit":1,"window_ms":60000},{"name":"hour","limit":5,"window_ms":3600000},{"name":"day","limit":10,"window_ms":86400000}]`

// Moments at which a wait is over. The same moment means the same history: nothing was sent since.
const (
	first  = "2026-11-20T12:01:00.000Z"
	second = "2026-11-20T12:02:00.000Z"
)

// still is an answer of GET /countdown.
func still(wait int, moment string) string {
	return fmt.Sprintf(`{"rule":"mailbox","limit":"minute","wait_ms":%d,"retry_at":%q,"server_time":"2026-11-20T12:00:00.000Z"}`, wait, moment)
}

// sent is what a back end passes on of a 200, refused of a 429.
func sent(wait int, moment, token string) string {
	return fmt.Sprintf(`{"status":"sent","limit":"minute","wait_ms":%d,"retry_at":%q,"countdown":%q,"limits":%s}`, wait, moment, token, tiers)
}

func refused(limit string, wait int, moment string) string {
	return fmt.Sprintf(`{"status":429,"rule":"mailbox","limit":%q,"wait_ms":%d,"retry_at":%q,"limits":%s}`, limit, wait, moment, tiers)
}

// A sight is what a page shows, what it said aloud and which events it sent.
type sight struct {
	Text                             string
	Held, Disabled, Waiting, Focused bool
	Events, Said                     []string
	Clicks, Submits, Fetches         int
}

func (s sight) count(event string) (n int) {
	for _, e := range s.Events {
		if name, _, _ := strings.Cut(e, " "); name == event {
			n++
		}
	}
	return n
}

func (tb *tab) look() sight     { tb.t.Helper(); return get[sight](tb, "look()") }
func (tb *tab) pass(ms float64) { tb.t.Helper(); tb.run(fmt.Sprintf("time.pass(%f)", ms)) }
func (tb *tab) setClock(ms int) { tb.t.Helper(); tb.run(fmt.Sprintf("time.set(%d)", ms)) }
func (tb *tab) element(script string) {
	tb.t.Helper()
	tb.run("document.querySelector('mailgate-countdown')." + script)
}
func (tb *tab) update(answer string) { tb.t.Helper(); tb.element("update(" + answer + ")") }
func (tb *tab) isSeen() {
	tb.t.Helper()
	tb.run("document.dispatchEvent(new Event('visibilitychange'))")
}

// refreshed asks the server and waits until its answer was dealt with.
func (tb *tab) refreshed() {
	tb.t.Helper()
	get[bool](tb, `document.querySelector("mailgate-countdown").refresh().then(() => true)`)
}

// started waits until the wait is known for sure.
func (tb *tab) started() {
	tb.t.Helper()
	tb.isTrue(`look().events.some((event) => event.startsWith("start"))`)
}

// shows waits until the page shows a text, and checks that it holds the button meanwhile.
func (tb *tab) shows(text string) {
	tb.t.Helper()
	servertest.Await(tb.t, fmt.Sprintf("the page to show %q", text), time.Minute, func() error {
		if seen := tb.look(); seen.Text != text || seen.Held != (text != "") {
			return fmt.Errorf("it shows %+v", seen)
		}
		return nil
	})
}

// mustShow checks what the page shows now.
func (tb *tab) mustShow(text string) {
	tb.t.Helper()
	if got := tb.look(); got.Text != text || got.Held != (text != "") || got.Waiting != (text != "") {
		tb.t.Errorf("it does not show %q: %+v", text, got)
	}
}

// isHeardBy waits until another tab was told of all that this one has stored.
func (tb *tab) isHeardBy(other *tab) {
	tb.t.Helper()
	other.run(`window.heard = new Promise(done => addEventListener("storage", event => event.key === "last" && done(true)))`)
	tb.run(`localStorage.last = Math.random()`)
	get[bool](other, "heard")
}
