package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

func TestReady_States_Answers(t *testing.T) {
	fault := errors.New("dial tcp 10.1.2.3:6379: connection refused")
	var broken bool
	degraded := int64(0)
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.Health.Degraded = func() (int64, int) { return degraded, 2 }
		o.Health.Ready = func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("asking the stores is not bounded")
			}
			if broken {
				return fault
			}
			return nil
		}
	}})
	r.do("GET", "/readyz", "", "").reads(t, `{"status":"ready"}`)
	degraded = r.now.Load()
	r.do("GET", "/readyz", "", "").reads(t, `{"status":"ready","degraded":true,"degraded_since":"`+stamp(degraded)+`","journal":2}`)
	r.do("GET", "/admin/figures", opsKey, "").says(t, fields{"degraded_since": stamp(degraded)})
	broken = true
	var got reply
	servertest.Eventually(t, "/readyz is 503", func() bool {
		got = r.do("GET", "/readyz", "", "")
		return got.status == 503
	})
	got.is(t, 503, "not-ready")
	got.hides(t, "10.1.2.3")
	got.logged(t, fields{"cause": "checking whether the stores are ready: " + fault.Error()})
	r.do("GET", "/livez", "", "").reads(t, `{"status":"live"}`)
}

// A client without a key cannot have the stores asked more often than a few times a second.
func TestReady_ManyRequests_AskStoresOnce(t *testing.T) {
	var asked atomic.Int64
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.Health.Ready = func(context.Context) error { asked.Add(1); return nil }
	}})
	began := time.Now()
	const requests = 200
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range requests / 4 {
				r.do("GET", "/readyz", "", "").is(t, 200, "")
			}
		})
	}
	all.Wait()
	if n, most := asked.Load(), 1+int64(time.Since(began)/(250*time.Millisecond)); n > most {
		t.Errorf("the stores were asked %d times for %d requests, want at most %d", n, requests, most)
	}
}

// The page shows every route and allows scripts of this server only.
func TestDocs_Page_ShowsEveryRoute(t *testing.T) {
	r := newRig(t, setup{options: func(o *apitest.Options) { o.Docs.Version = "1.2.3<x>" }})
	r.do("GET", "/openapi.yaml", "", "").reads(t, string(mailgate.OpenAPI))
	var fromYAML, fromJSON any
	must.Have(0, errors.Join(yaml.Unmarshal(mailgate.OpenAPI, &fromYAML), json.Unmarshal([]byte(r.do("GET", "/openapi.json", "", "").text), &fromJSON)))
	if same := must.Have(json.Marshal(fromYAML)); !bytes.Equal(same, must.Have(json.Marshal(fromJSON))) {
		t.Error("/openapi.json is another document")
	}
	got := r.do("GET", "/docs", "", "")
	got.is(t, 200, "")
	for _, name := range []string{"Content-Security-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Referrer-Policy"} {
		got.carries(t, map[string]string{name: r.do("GET", "/admin", "", "").header.Get(name)})
	}
	for path := range theContract.doc.at("paths").members() {
		got.contains(t, path)
	}
	for _, part := range regexp.MustCompile(`(?:href|src)="(/admin/console/[^"]+)"`).FindAllStringSubmatch(got.text, -1) {
		r.do("GET", part[1], "", "").is(t, 200, "")
	}
}

// Every method of every documented path is answered.
func TestMethods_EachPath_Answered(t *testing.T) {
	r := newRig(t, setup{options: func(o *apitest.Options) {
		hooksOn(t)(o)
		bouncesOn(t)(o)
	}})
	paths := theContract.doc.at("paths")
	for path := range paths.members() {
		allow, key := "POST, OPTIONS", appKey
		if paths.at(path, "get").value != nil {
			allow = "GET, HEAD, OPTIONS"
		}
		if path == "/not-me/{token}" || path == "/mailboxes/peek" { // which GET /mailboxes/{email} has too
			allow = "GET, HEAD, POST, OPTIONS"
		}
		if path == "/admin/suppressions/{email}" {
			allow = "PUT, DELETE, OPTIONS"
		}
		if strings.HasPrefix(path, "/admin") {
			key = opsKey
		}
		path = strings.NewReplacer("{email}", "a@example.com", "{file}", "console.js", "{action}", "reply", "{rule}", "all", "{token}", "x", "{provider}", "postmark").Replace(path)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			got := r.do(method, path, key, "")
			known := slices.Contains(strings.Split(allow, ", "), method)
			switch {
			case method == "OPTIONS":
				if got.status != 204 || got.text != "" || got.header.Get("Content-Type") != "" {
					t.Errorf("OPTIONS %s: %d %v %q", path, got.status, got.header, got.text)
				}
			case method == "HEAD":
				want := 405
				if known {
					want = r.do("GET", path, key, "").status
				}
				if got.status != want || got.text != "" || got.header.Get("Content-Length") == "0" {
					t.Errorf("HEAD %s: %d, %s bytes", path, got.status, got.header.Get("Content-Length"))
				}
			case !known:
				got.is(t, 405, "method-not-allowed")
			case got.status == 405:
				t.Errorf("%s %s is not allowed", method, path)
			}
			if (!known || method == "OPTIONS") && got.header.Get("Allow") != allow {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got.header.Get("Allow"), allow)
			}
		}
	}
	for _, path := range []string{"/", "/nothing", "/send-code/", "/Send-Code", "//send-code", "/send%2Dcode", "/mailboxes", "/mailboxes/",
		"/mailboxes/a/b", "/admin/", "/admin/console", "/admin/console/console.html", "/admin/console/index.html", "/admin/console/signup.js", "/admin/console/..%2Fweb.go", "/admin/mailboxes/a@example.com/", "/livez/", "/docs/x", "/openapi.yml"} {
		r.do("GET", path, appKey, "").is(t, 404, "not-found")
	}
}

// A caller's id is taken if it is 1 to 64 letters, digits, dots, _ and -, so that no address gets
// into the log by it.
func TestRequestID_Given_KeptIfSafe(t *testing.T) {
	r := newRig(t, setup{})
	made := regexp.MustCompile(`^[0-9a-f]{16}$`)
	tests := []struct {
		given string
		taken bool
	}{
		{"click-4711", true}, {"a", true}, {strings.Repeat("x", 64), true}, {"A.b_c-9", true},
		{"", false}, {strings.Repeat("x", 65), false}, {"a b", false}, {"é", false}, {"a\tb", false},
		{"alice@example.com", false}, {"alice%40example.com", false}, {`{"a":1}`, false}, {"a:b", false}, {"a/b", false},
	}
	for _, tt := range tests {
		got := r.request("GET", "/livez", http.Header{"X-Request-Id": {tt.given}}, "")
		id := got.header.Get("X-Request-Id")
		if (id == tt.given) != tt.taken || !tt.taken && !made.MatchString(id) {
			t.Errorf("%q became %q", tt.given, id)
		}
		if tt.taken && len(journal.about(t, id)) == 0 {
			t.Errorf("the log does not know %q", id)
		}
	}
}

// A browser that asks for / lands on the documentation; a program gets the usual 404.
// A version can be any text of who builds the program.
func TestPages_VersionWithMarkup_IsEscaped(t *testing.T) {
	r := newRig(t, setup{options: func(o *apitest.Options) { o.Docs.Version = `<script>"1"</script>` }})
	r.request("GET", "/docs", nil, "").contains(t, "<em>&lt;script&gt;")
	for _, path := range []string{"/docs", "/admin"} {
		if strings.Contains(r.request("GET", path, nil, "").text, `<script>"`) {
			t.Errorf("%s does not escape the version", path)
		}
	}
}

func TestStart_Root_SendsBrowsersToTheDocs(t *testing.T) {
	r := newRig(t, setup{})
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	browser := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}
	if got := r.request("GET", "/", browser, ""); got.status != 303 || got.header.Get("Location") != "/docs" {
		t.Errorf("answered %d, to %q", got.status, got.header.Get("Location"))
	}
	r.request("GET", "/", http.Header{"Accept": {"*/*"}}, "").is(t, 404, "not-found")
	r.request("POST", "/", browser, "").is(t, 405, "method-not-allowed")
	r.request("GET", "/nowhere", browser, "").is(t, 404, "not-found")
}

// The countdown's files are compressed on request, not sent again to clients that have them, and
// readable by pages of any origin.
func TestCountdownFiles_Requested_CachedAndCompressed(t *testing.T) {
	r := newRig(t, setup{})
	tags := map[string]bool{}
	for path, contentType := range map[string]string{"/countdown.js": "text/javascript; charset=utf-8", "/countdown.d.ts": "application/typescript"} {
		for encoding, coded := range map[string]string{"": "", "identity": "", "br;q=1, gzip;q=0": "", "gzip": "gzip", "deflate, gzip;q=0.5, br": "gzip"} {
			ask := func(known string) reply {
				got := r.request("GET", path, http.Header{"Accept-Encoding": {encoding}, "If-None-Match": {known}}, "")
				got.carries(t, map[string]string{"Vary": "Accept-Encoding", "Cache-Control": "public, max-age=3600", "Access-Control-Allow-Origin": "*"})
				return got
			}
			got := ask(`"other"`)
			got.carries(t, map[string]string{"Content-Type": contentType, "Content-Encoding": coded})
			if coded != "" {
				unpacked := must.Get(gzip.NewReader(strings.NewReader(got.text)))(t)
				got.text = string(must.Get(io.ReadAll(unpacked))(t))
			}
			if got.status != 200 || !strings.Contains(got.text, "export class MailgateCountdown") {
				t.Errorf("%s: %d, %d bytes", path, got.status, len(got.text))
			}
			tag := got.header.Get("ETag")
			tags[tag] = true
			for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
				again := ask(known)
				again.carries(t, map[string]string{"ETag": tag, "Content-Encoding": ""})
				if again.status != 304 || again.text != "" {
					t.Errorf("%s with If-None-Match %s: %d, %d bytes", path, known, again.status, len(again.text))
				}
			}
		}
	}
	if len(tags) != 4 {
		t.Errorf("the forms of the files have the tags %v", tags)
	}
}

// The countdown's script is compressed once, not for each request.
func TestCountdownFiles_ManyRequests_CompressedOnce(t *testing.T) {
	r := newRig(t, setup{alone: true, options: func(o *apitest.Options) { o.Log = slog.New(slog.DiscardHandler) }})
	const requests, most = 50, 128 << 10
	w := r.dial("") // the client of the tests checks each answer, which allocates
	get := func() {
		w.write("GET /countdown.js HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
		if got := w.answer("GET"); got.status != 200 || got.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("answered %d %v", got.status, got.header)
		}
	}
	get()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range requests {
		get()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / requests; each > most {
		t.Errorf("each request allocates %d bytes, want at most %d", each, most)
	}
}

// The page needs no key, its policy allows this server only, and every file of it is served.
func TestConsole_Page_LoadsFromThisServerOnly(t *testing.T) {
	r := newRig(t, setup{})
	got := r.do("GET", "/admin", "", "")
	got.is(t, 200, "")
	got.carries(t, map[string]string{
		"Content-Type": "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
			"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	})
	for _, named := range regexp.MustCompile(`(?:href|src)="(/admin/console/([^"]+))"`).FindAllStringSubmatch(got.text, -1) {
		if part := r.do("GET", named[1], "", ""); part.status != 200 || part.text != string(must.Get(fs.ReadFile(web.FS(), named[2]))(t)) {
			t.Errorf("%s is not the file", named[1])
		}
	}
}
