package settings

import (
	"strings"
)

// Shown is the value in force as it may be shown to anybody: a secret is masked, but
// what helps to tell one from another (a key's name, a relay's host) is left.
func (s *Settings) Shown(name string) string {
	text := s.origins[name].Text
	switch {
	case text == "", name == "data_dir" && !s.KeepsHistory() && !s.origins[name].Given():
		return ""
	case name == "api_keys":
		return s.APIKeys.masked()
	case name == "admin_keys":
		return s.AdminKeys.masked()
	case name == "smtp_url":
		return s.SMTPURL.masked()
	case name == "redis_url":
		return s.RedisURL.masked()
	}
	return text
}

const mask = "***"

func (k Keys) masked() string {
	var all []string
	for _, name := range k.Names() {
		all = append(all, name+":"+mask)
	}
	return strings.Join(all, ",")
}

func (r Relays) masked() string {
	var all []string
	for _, relay := range r {
		all = append(all, relay.String())
	}
	return strings.Join(all, ",")
}

// masked leaves out user, password and query, of which each may be a secret.
func (u RedisURL) masked() string {
	scheme, rest, _ := strings.Cut(string(u), "://")
	rest, _, _ = strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = mask + "@" + rest[at+1:]
	}
	return scheme + "://" + rest
}

// String keeps secrets out of whatever prints settings whole, and MarshalText out of what
// writes them as JSON, as logs are.
func (k Keys) String() string     { return k.masked() }
func (Secret) String() string     { return mask }
func (u RedisURL) String() string { return u.masked() }

func (k Keys) MarshalText() ([]byte, error)     { return []byte(k.String()), nil }
func (s Secret) MarshalText() ([]byte, error)   { return []byte(s.String()), nil }
func (u RedisURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
