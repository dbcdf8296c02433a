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
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// parseGrant reads what a token server gives tokens for, in YAML:
//
//	token_url: https://login.example/token   http:// on loopback only
//	client_id: …
//	client_secret: …
//	scope: …           where the server wants one
//	refresh_token: …   used instead of the client's own credentials
//
// An error names the line and repeats nothing that is in the file.
func parseGrant(text []byte) (*clientcredentials.Config, error) {
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
	for _, field := range [][2]string{{"token_url", file.TokenURL}, {"client_id", file.ClientID}, {"client_secret", file.ClientSecret}} {
		if field[1] == "" {
			return nil, errors.New(field[0] + " is missing")
		}
	}
	if server, err := url.Parse(file.TokenURL); err != nil || !isTokenServer(server) {
		return nil, errors.New("token_url must be https://, or http:// on loopback, with no user in it")
	}
	config := &clientcredentials.Config{
		ClientID: file.ClientID, ClientSecret: file.ClientSecret, TokenURL: file.TokenURL, AuthStyle: oauth2.AuthStyleInParams,
	}
	if file.Scope != "" {
		config.Scopes = []string{file.Scope}
	}
	if file.RefreshToken != "" {
		config.EndpointParams = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {file.RefreshToken}}
	}
	return config, nil
}

func isTokenServer(server *url.URL) bool {
	ip, _ := netip.ParseAddr(server.Hostname())
	loopback := server.Hostname() == "localhost" || ip.IsLoopback()
	return server.Hostname() != "" && server.User == nil && server.Fragment == "" &&
		(server.Scheme == "https" || server.Scheme == "http" && loopback)
}

const (
	mostTokenBytes = 8 << 10         // what fits into a line of AUTH, which is 12,288 at most
	unsaidToken    = 5 * time.Minute // where the server does not say how long it is valid
	tokenLeeway    = time.Minute     // another is requested this long before its end
)

// tokens keeps the token of a grant and asks for another when it is no longer valid. One send
// asks at a time, and the others wait for its token.
type tokens struct {
	config  clientcredentials.Config
	timeout time.Duration // of one request
	now     func() int64

	asking chan struct{} // holds one while what follows is in use
	token  string
	until  int64 // from then on it is not valid
}

func newTokens(config clientcredentials.Config, timeout time.Duration, now func() int64) *tokens {
	return &tokens{config: config, timeout: timeout, now: now, asking: make(chan struct{}, 1)}
}

// get returns the token that is kept, or a new one. It waits until ctx ends at most.
func (t *tokens) get(ctx context.Context) (string, error) {
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if t.now() < t.until {
		return t.token, nil
	}
	return t.ask(ctx)
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
func (t *tokens) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, tokenClient), t.timeout)
	defer cancel()
	began := t.now()
	token, err := t.config.Token(ctx)
	if err != nil {
		return "", t.refusal(ctx, err)
	}
	printable := !strings.ContainsFunc(token.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' })
	if !printable || len(token.AccessToken) > mostTokenBytes || token.Type() != "Bearer" {
		return "", errors.New("its answer has no usable token")
	}
	valid := unsaidToken
	if whole := time.Until(token.Expiry).Round(time.Second); whole > 0 {
		valid = max(whole-tokenLeeway, whole/2)
	}
	t.token, t.until = token.AccessToken, began+valid.Milliseconds()
	return t.token, nil
}

// refused notes that the relay rejected this token, so that another is requested next time, unless
// it already was. How often that is, the relay's circuit breaker bounds.
func (t *tokens) refused(token string) {
	select {
	case t.asking <- struct{}{}:
		if token == t.token { // and not a later one
			t.until = 0
		}
		<-t.asking
	default:
	}
}

// refusal words why there is no token, as "401 invalid_client: …", without an address or a
// secret. Errors of the library may quote the form, the body or a proxy's password.
func (t *tokens) refusal(ctx context.Context, err error) error {
	answer, answered := errors.AsType[*oauth2.RetrieveError](err)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the URL
	}
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case answered:
		return fmt.Errorf("%d %s", answer.Response.StatusCode, t.words(answer))
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &op), errors.As(err, &certificate):
		return err
	}
	return errors.New("it does not answer, or its answer has no usable token")
}

// words returns the token server's own, unless a secret or an address may be among them.
func (t *tokens) words(answer *oauth2.RetrieveError) string {
	said := oneLine(strings.Trim(answer.ErrorCode+": "+answer.ErrorDescription, ": "))
	if said == "" {
		return "without a usable token"
	}
	for _, secret := range []string{t.config.ClientSecret, t.config.EndpointParams.Get("refresh_token")} {
		for _, form := range []string{secret, url.QueryEscape(secret)} {
			if start := form[:min(len(form), 8)]; start != "" && strings.Contains(said, start) {
				return "with a text that repeats a secret"
			}
		}
	}
	if strings.Contains(said, "@") {
		return "with a text that has an address"
	}
	return said
}
