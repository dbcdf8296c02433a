package oauth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest"
	"github.com/mailgate/mailgate/mailer/oauth"
	"github.com/mailgate/mailgate/servertest"
)

const hanging = time.Minute // nothing here takes as long

// numbered gives token-1, token-2 and so on, each good for an hour.
func numbered(w http.ResponseWriter, n int) {
	mailtest.GiveToken(w, fmt.Sprint("token-", n), 3600)
}

func newTokens(t *testing.T, text string, timeout time.Duration, now func() int64) *oauth.Tokens {
	t.Helper()
	grant, err := oauth.ParseGrant([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return oauth.NewTokens(grant, timeout, now)
}

func still() int64 { return 0 }

func mustGet(t *testing.T, tokens *oauth.Tokens, want string) {
	t.Helper()
	if got, err := tokens.Token(t.Context()); got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// What is asked for, with a client's own credentials and with a refresh token.
func TestWhatIsAsked(t *testing.T) {
	server := mailtest.StartTokens(t, numbered)
	mustGet(t, newTokens(t, server.Text()+"refresh_token: ''", hanging, still), "token-1")
	mustGet(t, newTokens(t, server.Text()+"refresh_token: "+mailtest.RefreshToken, hanging, still), "token-2")
	want := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"mailgate"},
		"client_secret": {mailtest.ClientSecret}, "scope": {"https://relay.example/.default"},
	}
	asked := server.Asked()
	if got := asked[0].Encode(); got != want.Encode() {
		t.Errorf("asked with %s, want %s", got, want.Encode())
	}
	want.Set("grant_type", "refresh_token")
	want.Set("refresh_token", mailtest.RefreshToken)
	if got := asked[1].Encode(); got != want.Encode() {
		t.Errorf("asked with %s, want %s", got, want.Encode())
	}
}

// No connection is kept, as an hour goes by until the next.
func TestHowItIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); r.Method != http.MethodPost || accept != "application/json" || !r.Close {
			t.Errorf("%s, Accept: %q, close: %v", r.Method, accept, r.Close)
		}
		numbered(w, 1)
	}))
	defer server.Close()
	mustGet(t, newTokens(t, "token_url: "+server.URL+"\nclient_id: a\nclient_secret: b", hanging, still), "token-1")
}

// A token is kept from when it was asked for until shortly before its end, by the clock
// that was handed in.
func TestATokenIsKept(t *testing.T) {
	for expiry, kept := range map[string]int64{
		`,"expires_in":3600`:                      3540_000,
		`,"expires_in":"3600"`:                    3540_000,
		`,"expires_in":120,"token_type":"bearer"`: 60_000,
		`,"expires_in":60`:                        30_000,
		`,"expires_in":1`:                         500,
		`,"expires_in":99999999`:                  86_340_000,
		``:                                        300_000,
		`,"expires_in":null`:                      300_000,
		`,"expires_in":0`:                         300_000,
		`,"expires_in":-1`:                        300_000,
		`,"expires_in":1.5`:                       300_000,
		`,"expires_in":99999999999999999999`:      300_000,
	} {
		t.Run(expiry, func(t *testing.T) {
			const onItsWay = 10
			var now atomic.Int64
			server := mailtest.StartTokens(t, func(w http.ResponseWriter, n int) {
				now.Add(onItsWay)
				fmt.Fprintf(w, `{"access_token":"!token~%d"%s}`, n, expiry)
			})
			tokens := newTokens(t, server.Text(), hanging, now.Load)
			mustGet(t, tokens, "!token~1")
			now.Add(kept - onItsWay - 1)
			mustGet(t, tokens, "!token~1")
			now.Add(1)
			mustGet(t, tokens, "!token~2")
			mustGet(t, tokens, "!token~2")
		})
	}
}

// A token that is refused, to two connections at a time, is thrown away. If the next is,
// too, it is kept for what is left of a minute.
func TestRefusedTokens(t *testing.T) {
	server := mailtest.StartTokens(t, numbered)
	now := int64(1e12)
	tokens := newTokens(t, server.Text(), hanging, func() int64 { return now })
	for _, step := range []struct {
		after  int64
		token  string
		refuse bool
	}{
		{0, "token-1", true},
		{0, "token-2", false}, {1000, "token-2", true}, {0, "token-2", true}, {58_999, "token-2", true},
		{0, "token-2", true}, {1, "token-3", false},
		{0, "token-3", true}, {0, "token-4", true}, {0, "token-4", true}, // again and again, from here on
		{60_000, "token-5", true}, {0, "token-6", true}, {0, "token-6", true},
		{-1e9, "token-6", true}, {0, "token-7", true}, {0, "token-7", false}, // the clock stepped back
	} {
		now += step.after
		mustGet(t, tokens, step.token)
		if step.refuse {
			tokens.Refused(step.token)
			tokens.Refused(step.token)
		}
	}
	now += 60_000
	mustGet(t, tokens, "token-8")
	tokens.Refused("token-1") // late: others have taken its place
	mustGet(t, tokens, "token-8")
}

// waiting is how many wait for their turn to ask.
func waiting() int {
	stacks := make([]byte, 4<<20)
	n := 0
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "[select") && strings.Contains(stack, "oauth.(*Tokens).Token(") && !strings.Contains(stack, "net/http") {
			n++
		}
	}
	return n
}

// Of those who come at a time one asks, and all have what he gets: a token, or a failure,
// after which the next one asks anew.
func TestOneAsksForAll(t *testing.T) {
	const many = 32
	for name, good := range map[string]bool{"a token": true, "a failure": false} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			server := mailtest.StartTokens(t, func(w http.ResponseWriter, n int) {
				<-goOn
				if !good {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				numbered(w, n)
			})
			tokens := newTokens(t, server.Text(), hanging, still)
			var group sync.WaitGroup
			var right atomic.Int32
			for range many {
				group.Go(func() {
					token, err := tokens.Token(t.Context())
					if good && token == "token-1" || !good && err != nil && strings.Contains(err.Error(), "503") {
						right.Add(1)
					}
				})
			}
			servertest.Eventually(t, "all but one wait", func() bool { return waiting() == many-1 })
			close(goOn)
			group.Wait()
			if asked := len(server.Asked()); asked != 1 || right.Load() != many {
				t.Errorf("it was asked %d times, and %d of %d had what it says", asked, right.Load(), many)
			}
			_, _ = tokens.Token(t.Context())
			if asked, again := len(server.Asked()), map[bool]int{true: 1, false: 2}[good]; asked != again {
				t.Errorf("it was asked %d times in the end, want %d", asked, again)
			}
		})
	}
}

// Whoever gives up gives up at once, be he the one who asks or one who waits for him. It
// is no failure to those who are left: one of them asks.
func TestWhoGivesUp(t *testing.T) {
	goOn := make(chan struct{})
	server := mailtest.StartTokens(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			<-goOn
		}
		numbered(w, n)
	})
	defer close(goOn)
	tokens := newTokens(t, server.Text(), hanging, still)
	give := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := tokens.Token(ctx)
			done <- err
		}()
		return done
	}
	first, endFirst := context.WithCancel(t.Context())
	second, endSecond := context.WithCancel(t.Context())
	asks := give(first)
	servertest.Eventually(t, "the first asks", func() bool { return len(server.Asked()) == 1 })
	waits, stays := give(second), give(t.Context())
	servertest.Eventually(t, "two wait", func() bool { return waiting() == 2 })
	endSecond()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("who waited: %v", err)
	}
	endFirst()
	if err := <-asks; !errors.Is(err, context.Canceled) {
		t.Errorf("who asked: %v", err)
	}
	if err := <-stays; err != nil {
		t.Errorf("who stayed: %v", err)
	}
	mustGet(t, tokens, "token-2")
}

// A server that is silent, at once or in the middle, is given up after the timeout.
func TestASilentServer(t *testing.T) {
	for name, begins := range map[string]string{"at once": "", "in the middle": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"} {
		t.Run(name, func(t *testing.T) {
			server := mailtest.StartTokens(t, func(w http.ResponseWriter, _ int) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, begins)
				_, _ = io.Copy(io.Discard, conn)
			})
			_, err := newTokens(t, server.Text(), 20*time.Millisecond, still).Token(t.Context())
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// One that is silent before there is TLS is left, too: no connection to it stays open.
func TestASilentHandshake(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	left := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
			conn.Close()
		}
		left <- err
	}()
	tokens := newTokens(t, "token_url: https://"+listener.Addr().String()+"\nclient_id: a\nclient_secret: b", 20*time.Millisecond, still)
	if _, err := tokens.Token(t.Context()); err == nil {
		t.Error("it gave a token")
	}
	servertest.Eventually(t, "the connection is closed", func() bool { return len(left) == 1 })
}

// A server that was away is asked again.
func TestAServerThatComesBack(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	tokens := newTokens(t, "token_url: http://"+addr+"\nclient_id: a\nclient_secret: b", hanging, still)
	if _, err := tokens.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("err = %v", err)
	}
	listener, err = net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("somebody else took its place: %v", err)
	}
	back := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { numbered(w, 1) })}}
	back.Start()
	defer back.Close()
	mustGet(t, tokens, "token-1")
}

// What a server may answer in place of a token, and what is told of it: what helps, and
// nothing secret.
func TestRefusals(t *testing.T) {
	elsewhere := mailtest.StartTokens(t, numbered)
	asJSON := func(status int, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	redirect := func(status int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			asJSON(status, `{"access_token":"a"}`)(w)
		}
	}
	raw := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, text)
				conn.Close()
			}
		}
	}
	const (
		none    = " without a token that can be used"
		hidden  = " with a text that repeats a secret"
		strange = "it could not be asked, or what it answers is not HTTP"
	)
	encoded := base64.StdEncoding.EncodeToString([]byte(mailtest.ClientSecret))
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"Microsoft's":         {asJSON(401, `{"error":"invalid_client","error_description":"AADSTS7000222: The provided client secret keys are expired.\r\nTrace ID: 1","error_codes":[7000222]}`), "401 invalid_client: AADSTS7000222: The provided client secret keys are expired. Trace ID: 1"},
		"Google's":            {asJSON(400, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`), "400 invalid_grant: Token has been expired or revoked."},
		"a word":              {asJSON(400, `{"error":"invalid_scope"}`), "400 invalid_scope"},
		"an error with 200":   {asJSON(200, `{"error":"invalid_scope"}`), "200 invalid_scope"},
		"an address":          {asJSON(400, `{"error":"invalid_grant","error_description":"user 'a@b.example' is blocked"}`), "400 invalid_grant: user *** is blocked"},
		"no token":            {asJSON(200, `{}`), "200" + none},
		"an empty one":        {asJSON(200, `{"access_token":""}`), "200" + none},
		"one with a blank":    {asJSON(200, `{"access_token":"a b"}`), "200" + none},
		"one with a Ctrl-A":   {asJSON(200, `{"access_token":"a\u0001b"}`), "200" + none},
		"one with a DEL":      {asJSON(200, `{"access_token":"a\u007f"}`), "200" + none},
		"one for no time":     {asJSON(200, `{"access_token":"a","expires_in":true}`), "200" + none},
		"one beyond ASCII":    {asJSON(200, `{"access_token":"ä"}`), "200" + none},
		"one too long":        {asJSON(200, `{"access_token":"`+strings.Repeat("a", 9000)+`"}`), "200" + none},
		"one that lasts long": {asJSON(200, `{"access_token":"a","expires_in":"long"}`), "200" + none},
		"one of another kind": {asJSON(200, `{"access_token":"a","token_type":"mac"}`), "200" + none},
		"one with 201":        {asJSON(201, `{"access_token":"a"}`), "201" + none},
		"a list":              {asJSON(200, `[]`), "200" + none},
		"a page":              {asJSON(502, "<html>Bad Gateway"), "502" + none},
		"nothing":             {asJSON(500, ""), "500" + none},
		"without end":         {asJSON(200, `{"access_token":"a"}`+strings.Repeat(" ", 70<<10)), "200" + none},
		"long headers":        {func(w http.ResponseWriter) { w.Header().Set("X", strings.Repeat("x", 70<<10)) }, strange},
		"moved, 302":          {redirect(302), "302" + none},
		"moved, 307":          {redirect(307), "307" + none},
		"moved, 308":          {redirect(308), "308" + none},
		"not HTTP":            {raw("220 relay.example ESMTP " + mailtest.ClientSecret + "\r\n"), strange},
		"hung up":             {raw(""), strange},
		"the secret":          {asJSON(401, `{"error":"invalid_client","error_description":"`+mailtest.ClientSecret+` is wrong"}`), "401" + hidden},
		"the secret as error": {asJSON(401, `{"error":"`+mailtest.ClientSecret+`"}`), "401" + hidden},
		"the form":            {asJSON(401, `{"error":"invalid_client","error_description":"client_secret=`+url.QueryEscape(mailtest.ClientSecret)+`"}`), "401" + hidden},
		"a part of a secret":  {asJSON(400, `{"error":"invalid_grant","error_description":"no such token: …`+mailtest.RefreshToken[3:11]+`…"}`), "400" + hidden},
		"its beginning":       {asJSON(400, `{"error":"invalid_grant","error_description":"no such token: `+mailtest.RefreshToken[:8]+`…"}`), "400" + hidden},
		"its end":             {asJSON(400, `{"error":"invalid_grant","error_description":"no such token: …`+mailtest.RefreshToken[len(mailtest.RefreshToken)-8:]+`"}`), "400" + hidden},
	} {
		t.Run(name, func(t *testing.T) {
			server := mailtest.StartTokens(t, func(w http.ResponseWriter, _ int) { c.answer(w) })
			tokens := newTokens(t, server.Text()+"refresh_token: "+mailtest.RefreshToken, hanging, still)
			token, err := tokens.Token(t.Context())
			if token != "" || err == nil || err.Error() != c.want {
				t.Errorf("got %q, %v; want %q", token, err, c.want)
			}
			shown := fmt.Sprintf("%v %+v %#v %v %+v %#v", err, err, err, tokens, tokens, tokens)
			for _, secret := range []string{mailtest.ClientSecret, url.QueryEscape(mailtest.ClientSecret), encoded, mailtest.RefreshToken, "b.example"} {
				if strings.Contains(shown, secret) {
					t.Errorf("a secret is shown: %s", shown)
				}
			}
		})
	}
	if asked := elsewhere.Asked(); len(asked) != 0 {
		t.Errorf("a redirect was followed: %v", asked)
	}
}

// A server that nobody vouches for is told nothing.
func TestAServerThatNobodyVouchesFor(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("it was asked")
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, err := newTokens(t, "token_url: "+server.URL+"\nclient_id: a\nclient_secret: b", hanging, still).Token(t.Context())
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), server.URL) {
		t.Errorf("err = %v", err)
	}
}

// A token is in nothing that is printed.
func TestTokensShowNone(t *testing.T) {
	server := mailtest.StartTokens(t, numbered)
	tokens := newTokens(t, server.Text(), hanging, still)
	mustGet(t, tokens, "token-1")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(format, tokens); strings.Contains(got, "token-1") || strings.Contains(got, "746f6b656e") {
			t.Errorf("%s shows %s", format, got)
		}
	}
}
