package oauth

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/strictyaml"
)

// A Grant is what a token server gives tokens for, and where it is.
type Grant struct {
	server *url.URL
	// form is what it is asked with. It is no value, as fmt prints those, whatever the
	// methods say, of a Grant that is in somebody's unexported field.
	form func() url.Values
}

// Server is the token server's host, and its port where one is given.
func (g Grant) Server() string { return g.server.Host }

var (
	names    = []string{"token_url", "client_id", "client_secret", "scope", "refresh_token"}
	required = names[:3]
)

// ParseGrant reads a file in YAML:
//
//	token_url: https://login.example/token   http:// on loopback only
//	client_id: …
//	client_secret: …
//	scope: …           where the server wants one
//	refresh_token: …   asked with in place of the client's own credentials
//
// An error names the line and repeats nothing that stands there.
func ParseGrant(text []byte) (Grant, error) {
	root, err := strictyaml.Parse("oauth", text)
	if err != nil {
		return Grant{}, err
	}
	pairs, err := root.Mapping()
	if err != nil {
		return Grant{}, err
	}
	var server *url.URL
	given := map[string]string{}
	for _, pair := range pairs {
		if !slices.Contains(names, pair.Name) {
			return Grant{}, pair.Value.Refuse("there is no such line; it knows " + strings.Join(names, ", "))
		}
		if !pair.Value.Given() {
			continue
		}
		if given[pair.Name], err = pair.Value.Plain(); err != nil {
			return Grant{}, err
		}
		if pair.Name == "token_url" {
			if server = tokenServer(given[pair.Name]); server == nil {
				return Grant{}, pair.Value.Refuse("it must be https://, or http:// on loopback, with no user in it")
			}
		}
	}
	for _, name := range required {
		if given[name] == "" {
			return Grant{}, root.Refuse(name + " is missing")
		}
	}
	return Grant{server: server, form: func() url.Values { return form(given) }}, nil
}

// tokenServer is the URL of a token server, or nil if it cannot be one.
func tokenServer(text string) *url.URL {
	server, err := url.Parse(text)
	if err != nil || server.Hostname() == "" || server.User != nil || server.Fragment != "" {
		return nil
	}
	ip, _ := netip.ParseAddr(server.Hostname())
	loopback := server.Hostname() == "localhost" || ip.IsLoopback()
	if server.Scheme != "https" && (server.Scheme != "http" || !loopback) {
		return nil
	}
	return server
}

func form(given map[string]string) url.Values {
	fields := url.Values{"grant_type": {"client_credentials"}}
	if given["refresh_token"] != "" {
		fields.Set("grant_type", "refresh_token")
	}
	for name, text := range given {
		if name != "token_url" && text != "" {
			fields.Set(name, text)
		}
	}
	return fields
}

// telling is how much of a secret a text may not repeat.
const telling = 8

// isToldIn says whether a text has a secret in it, or a part of one.
func (g Grant) isToldIn(text string) bool {
	fields := g.form()
	for _, name := range []string{"client_secret", "refresh_token"} {
		for _, secret := range []string{fields.Get(name), url.QueryEscape(fields.Get(name))} {
			part := min(telling, len(secret))
			for at := 0; part > 0 && at+part <= len(secret); at++ {
				if strings.Contains(text, secret[at:at+part]) {
					return true
				}
			}
		}
	}
	return false
}
