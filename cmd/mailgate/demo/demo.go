// Package demo is the sign-up form of "mailgate dev", with a back end that asks mailgate over HTTP,
// as any back end does, and an inbox with the emails of the built-in relay. It stands in front of mailgate and
// passes all other requests on.
//
// It serves loopback names only, so that no page from elsewhere reaches it through the
// visitor's browser.
package demo

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

//go:embed pages
var pages embed.FS

// Options are the parts of the demo.
type Options struct {
	Address          string          // of mailgate, host:port
	APIKey, AdminKey string          // the secrets of its keys; empty without keys
	Relay            *sandbox.Server // whose emails are shown
	Ended            context.Context // requests that wait for email end with it
	SMTP             SMTP            // how to point a program at mailgate
}

// SMTP is what a program needs to send by SMTP, but for the password: any page may read it.
type SMTP struct {
	Host    string `json:"host"`
	Port    string `json:"port"`
	User    string `json:"user"` // empty without keys
	Senders string `json:"senders"`
}

// New returns the handler of the whole demo: its pages under /, what they load under /web/,
// their requests under /demo/, and mailgate.
func New(o Options) http.Handler {
	inbox := &inbox{relay: o.Relay, ended: o.Ended, opened: map[uint64]bool{}, hidden: map[uint64]bool{}}
	mailgate := http.StripPrefix("/demo", withKey(o))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page("index.html"))
	mux.HandleFunc("GET /inbox", page("inbox.html"))
	mux.HandleFunc("GET /web/{name}", func(w http.ResponseWriter, r *http.Request) { page(r.PathValue("name"))(w, r) })
	mux.Handle("POST /demo/send-code", asVisitor(mailgate))
	mux.Handle("POST /demo/verify-code", mailgate)
	mux.Handle("GET /demo/mailboxes/{email}", mailgate)
	mux.Handle("POST /demo/admin/mailboxes/{email}/reset", mailgate)
	mux.HandleFunc("GET /demo/smtp", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, o.SMTP) })
	mux.HandleFunc("GET /demo/mails", inbox.list)
	mux.HandleFunc("POST /demo/mails/delete", inbox.remove)
	mux.HandleFunc("POST /demo/mails/restore", inbox.restore)
	mux.HandleFunc("GET /demo/mails/{id}", inbox.mail)
	mux.HandleFunc("GET /demo/mails/{id}/html", inbox.html)
	mux.HandleFunc("GET /demo/mails/{id}/raw", inbox.raw)
	mux.HandleFunc("GET /demo/mails/{id}/files/{n}", inbox.file)
	mux.HandleFunc("/", missing)
	front := http.NewServeMux()
	front.Handle("/", pass(o))
	for _, own := range []string{"/{$}", "/inbox", "/web/", "/demo/"} {
		front.Handle(own, guard(mux))
	}
	return forLoopback(front)
}

// page serves a file of the demo, or one that it shares with the other pages.
func page(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		own, _ := fs.Sub(pages, "pages") // it is there
		for _, files := range []fs.FS{own, web.FS()} {
			if _, err := fs.Stat(files, name); err == nil {
				http.ServeFileFS(w, r, files, name)
				return
			}
		}
		missing(w, r)
	}
}

func missing(w http.ResponseWriter, _ *http.Request) {
	fail(w, http.StatusNotFound, "not-found", "Not found", "Pages: /, /inbox and /admin. API: /docs.")
}

// pass passes a request on to mailgate as it came, with its Host, by which mailgate knows a page of its own.
func pass(o Options) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: o.Address})
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			fail(w, http.StatusBadGateway, "not-ready", "Not ready", "mailgate does not answer.")
		},
	}
}

// withKey passes a request on with the key for it, if there are keys.
func withKey(o Options) http.Handler {
	next := pass(o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := o.APIKey
		if strings.HasPrefix(r.URL.Path, "/admin/") {
			key = o.AdminKey
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		next.ServeHTTP(w, r)
	})
}

// visitor is the address of the page's visitor. It is one for documentation, as mailgate warns about loopback addresses.
const visitor = "203.0.113.7"

// asVisitor adds the visitor's address to a request, as a back end does. The page has no say in it.
func asVisitor(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields := map[string]any{}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&fields); err != nil {
			fail(w, http.StatusBadRequest, "bad-request", "Bad request", "The body is not a JSON object of up to 64 KiB.")
			return
		}
		fields["client_ip"] = visitor
		body, _ := json.Marshal(fields) // it was JSON
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// forLoopback refuses requests for other names than loopback ones, and those of a proxy, which come from elsewhere.
func forLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forwarded := slices.ContainsFunc(network.ForwardingHeaders, func(name string) bool { return r.Header[name] != nil })
		if forwarded || !network.IsLoopbackHost(r.Host) {
			fail(w, http.StatusForbidden, "forbidden", "Request from another site", "mailgate dev answers only on loopback names such as localhost, and no proxy.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guard refuses requests from other sites that may change something. It restricts pages to their own parts.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isJSON := strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") // which no form sends
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		foreign := slices.ContainsFunc(r.Header["Origin"], func(origin string) bool { return !network.IsOriginOf(origin, r.Host) }) ||
			slices.ContainsFunc(r.Header["Sec-Fetch-Site"], func(site string) bool { return site != "same-origin" && site != "none" })
		if !reads && (!isJSON || foreign) {
			fail(w, http.StatusForbidden, "forbidden", "Request from another site", "mailgate dev takes requests from its own pages only.")
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src blob:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only if the browser has gone
}

// fail answers with a problem, as the API does.
func fail(w http.ResponseWriter, status int, kind, title, detail string) {
	w.Header().Set("Content-Type", wire.ProblemType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": wire.Ours + kind, "title": title, "status": status, "detail": detail}) // as above
}
