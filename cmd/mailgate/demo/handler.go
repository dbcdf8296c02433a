package demo

import (
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/netip"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

// Options are the parts of the demo.
type Options struct {
	Client *Client         // how to reach mailgate
	Relay  *sandbox.Server // whose emails are shown
	Pages  fs.FS           // index.html, inbox.html and what they load
	Ended  context.Context // requests that wait for email end with it
}

// New is the handler of the whole demo: its pages under /, what they load under /web/, and
// their requests under /demo/.
func New(o Options) http.Handler {
	inbox := &inbox{relay: o.Relay, ended: o.Ended, opened: map[uint64]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page(o.Pages, "index.html"))
	mux.HandleFunc("GET /inbox", page(o.Pages, "inbox.html"))
	mux.HandleFunc("GET /console", func(w http.ResponseWriter, r *http.Request) {
		// A fragment stays in the browser: no server and no log sees the key.
		http.Redirect(w, r, "/admin#key="+o.Client.AdminKey, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/docs#api="+o.Client.APIKey+"&admin="+o.Client.AdminKey, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /web/{name}", part(o.Pages))
	mux.HandleFunc("POST /demo/sign-up", o.Client.forward(o.Client.sendCode))
	mux.HandleFunc("POST /demo/code", o.Client.forward(o.Client.verifyCode))
	mux.HandleFunc("POST /demo/standing", o.Client.forward(o.Client.mailbox))
	mux.HandleFunc("POST /demo/reset", o.Client.forward(o.Client.reset))
	mux.HandleFunc("GET /demo/mails", inbox.list)
	mux.HandleFunc("POST /demo/mails/clear", inbox.clear)
	mux.HandleFunc("POST /demo/mails/restore", inbox.restore)
	mux.HandleFunc("GET /demo/mails/{id}", inbox.mail)
	mux.HandleFunc("GET /demo/mails/{id}/html", inbox.html)
	mux.HandleFunc("/", notFound)
	return guard(mux)
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	fail(w, http.StatusNotFound, "Nothing here. Pages: / and /inbox. API: /docs.")
}

// part is one file that a page loads.
func part(pages fs.FS) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := fs.Stat(pages, r.PathValue("name")); err != nil {
			notFound(w, r)
			return
		}
		http.ServeFileFS(w, r, pages, r.PathValue("name"))
	}
}

func page(pages fs.FS, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, pages, name) }
}

// guard refuses requests for names other than loopback ones and those that another site
// makes, and restricts pages to their own parts.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			fail(w, http.StatusForbidden, "mailgate dev answers only on loopback names such as localhost.")
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.Method != http.MethodGet {
			fail(w, http.StatusForbidden, "mailgate dev takes no requests from other sites.")
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	// The only possible error is that the browser has gone.
	_ = json.NewEncoder(w).Encode(answer)
}

func fail(w http.ResponseWriter, status int, sentence string) {
	writeJSON(w, status, struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
	}{sentence, status})
}
