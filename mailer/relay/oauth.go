package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"
)

// grant is what a token server gives tokens for, and where it is.
type grant struct {
	server string // the token server's host, and its port where one is given
	// config returns what it is asked with. It is no value, because fmt prints values,
	// whatever the methods say, of a grant in an unexported field.
	config func() clientcredentials.Config
	// secrets are the starts of what no text may repeat.
	secrets func() []string
}

// parseGrant reads a file in YAML:
//
//	token_url: https://login.example/token   http:// on loopback only
//	client_id: …
//	client_secret: …
//	scope: …           where the server wants one
//	refresh_token: …   asked with in place of the client's own credentials
//
// An error names the line and repeats nothing that is in the file.
func parseGrant(text []byte) (*grant, error) {
	var file struct {
		TokenURL     string `yaml:"token_url"`
		ClientID     string `yaml:"client_id"`
		ClientSecret string `yaml:"client_secret"`
		Scope        string `yaml:"scope"`
		RefreshToken string `yaml:"refresh_token"`
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		if at, ok := errors.AsType[yaml.Error](err); ok && at.GetToken() != nil {
			return nil, fmt.Errorf("line %d is not one of token_url, client_id, client_secret, scope and refresh_token, once, with a text", at.GetToken().Position.Line)
		}
		return nil, errors.New("the file is not YAML")
	}
	for name, value := range map[string]string{"client_id": file.ClientID, "client_secret": file.ClientSecret, "token_url": file.TokenURL} {
		if value == "" {
			return nil, errors.New(name + " is missing")
		}
	}
	server, err := url.Parse(file.TokenURL)
	if err != nil || !isTokenServer(server) {
		return nil, errors.New("token_url must be https://, or http:// on loopback, with no user in it")
	}
	config := clientcredentials.Config{
		ClientID: file.ClientID, ClientSecret: file.ClientSecret, TokenURL: file.TokenURL, AuthStyle: oauth2.AuthStyleInParams,
	}
	if file.Scope != "" {
		config.Scopes = []string{file.Scope}
	}
	if file.RefreshToken != "" {
		config.EndpointParams = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {file.RefreshToken}}
	}
	return &grant{
		server: server.Host,
		config: func() clientcredentials.Config { return config },
		secrets: func() []string {
			return []string{file.ClientSecret, url.QueryEscape(file.ClientSecret), file.RefreshToken, url.QueryEscape(file.RefreshToken)}
		},
	}, nil
}

func isTokenServer(server *url.URL) bool {
	ip, _ := netip.ParseAddr(server.Hostname())
	loopback := server.Hostname() == "localhost" || ip.IsLoopback()
	return server.Hostname() != "" && server.User == nil && server.Fragment == "" &&
		(server.Scheme == "https" || server.Scheme == "http" && loopback)
}

const (
	mostTokenBytes = 8 << 10         // what fits into a line of AUTH, which is 12,288 at most
	longestToken   = 24 * time.Hour  // that a token is kept
	unsaidToken    = 5 * time.Minute // where the server does not say
	tokenLeeway    = time.Minute     // before its end another is asked for
	// refusalPause is how long a relay that refuses one token after the other keeps the
	// last: it is most likely the account that is not allowed, and no token would help.
	refusalPause = 60 * 1000
)

// tokens keeps the token of a grant and asks for another when it is no longer valid. Of
// those who wait at a time one asks, and all take the result.
type tokens struct {
	grant   grant
	life    context.Context
	timeout time.Duration // of one request
	now     func() int64
	flight  singleflight.Group

	mu      sync.Mutex
	token   string
	until   int64 // from then on it is not valid
	pausing int64 // until then a token that is refused is kept
}

// get returns the token that is kept, or a new one. It waits until ctx ends at most.
func (t *tokens) get(ctx context.Context) (string, error) {
	if token := t.valid(); token != "" {
		return token, nil
	}
	asked := t.flight.DoChan("", func() (any, error) {
		if token := t.valid(); token != "" {
			return token, nil
		}
		return t.ask()
	})
	select {
	case answer := <-asked:
		token, _ := answer.Val.(string)
		return token, answer.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (t *tokens) valid() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now() < t.until {
		return t.token
	}
	return ""
}

// tokenClient goes where it was told to and nowhere else: a form with secrets must not
// follow a redirect.
var tokenClient = &http.Client{
	Transport: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DisableKeepAlives:      true, // it is asked once an hour
		MaxResponseHeaderBytes: 64 << 10,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// ask asks the token server once.
func (t *tokens) ask() (string, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(t.life, oauth2.HTTPClient, tokenClient), t.timeout)
	defer cancel()
	began := t.now()
	config := t.grant.config()
	token, err := config.Token(ctx)
	if err != nil {
		return "", t.grant.refusal(ctx, err)
	}
	printable := !strings.ContainsFunc(token.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' })
	if !printable || len(token.AccessToken) > mostTokenBytes || token.Type() != "Bearer" {
		return "", errors.New("it answered without a token that can be used")
	}
	life := unsaidToken
	if whole := min(time.Until(token.Expiry).Round(time.Second), longestToken); whole > 0 {
		life = max(whole-tokenLeeway, whole/2)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.until = token.AccessToken, began+life.Milliseconds()
	return t.token, nil
}

// refused says that the relay would not have this token. Another is asked for next time. If
// that is refused, too, it is kept until a minute has passed.
func (t *tokens) refused(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if token != t.token {
		return // another took its place
	}
	now := t.now()
	if rest := t.pausing - now; rest > 0 && rest <= refusalPause { // a clock that stepped back prolongs nothing
		t.until = min(t.until, t.pausing)
		return
	}
	t.until, t.pausing = now, now+refusalPause
}

// refusal words why there is no token: "401 invalid_client: …", without an address or a
// secret. Errors of the library may quote the form, the body or a proxy's password.
func (g grant) refusal(ctx context.Context, err error) error {
	answer, answered := errors.AsType[*oauth2.RetrieveError](err)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the URL
	}
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case answered:
		return errors.New(g.words(answer))
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &op), errors.As(err, &certificate):
		return err
	}
	return errors.New("it could not be asked, or answered without a token that can be used")
}

func (g grant) words(answer *oauth2.RetrieveError) string {
	said := strings.Trim(answer.ErrorCode+": "+answer.ErrorDescription, ": ")
	for _, secret := range g.secrets() {
		if repeats(said, secret) {
			said = "with a text that repeats a secret"
		}
	}
	words := strings.Fields(oneLine(said))
	for i, word := range words {
		if strings.Contains(word, "@") {
			words[i] = "***"
		}
	}
	if len(words) == 0 {
		words = []string{"without a token that can be used"}
	}
	return fmt.Sprintf("%d %s", answer.Response.StatusCode, strings.Join(words, " "))
}

// repeats reports whether a text has eight successive bytes of a secret, or all of a shorter one.
func repeats(text, secret string) bool {
	part := min(len(secret), 8)
	for i := 0; part > 0 && i+part <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+part]) {
			return true
		}
	}
	return false
}
