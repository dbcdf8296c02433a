package redisx

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// errURL is constant, as the text of the library can show a part of a password.
var errURL = errors.New("not a Redis URL; write redis://user:password@host:6379/0, redis+cluster://user:password@host:6379?addr=host:port or " +
	"redis+sentinel://host:26379?master_name=name&addr=host:port, with user and password percent-encoded")

// settings are those that each form may have. All others are set by Open, or would have replicas asked.
var settings = map[string][]string{"": {}, "cluster": {"addr"}, "sentinel": {"master_name", "username", "password", "addr"}}

// CheckURL says in one sentence what is wrong with the URL of Options, if anything is. It
// repeats no part of it.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

// parseURL reads the addresses, the names and passwords, and the certificates to trust.
func parseURL(text string) (*redis.UniversalOptions, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errURL
	}
	scheme, form, _ := strings.Cut(u.Scheme, "+")
	query, err := url.ParseQuery(u.RawQuery)
	several := strings.ContainsAny(u.Hostname(), ",:") && !strings.HasPrefix(u.Host, "[") // hosts or ports
	if err != nil || u.Hostname() == "" || several || strings.Contains(u.RawQuery, "@") || scheme != "redis" && scheme != "rediss" || settings[form] == nil {
		return nil, errURL
	}
	var certificates *tls.Config // for each host by its own name
	if scheme == "rediss" {
		certificates = &tls.Config{MinVersion: tls.VersionTLS12}
		if ca := query.Get("ca"); ca != "" {
			if certificates.RootCAs, err = readAuthorities(ca); err != nil {
				return nil, err
			}
		}
		query.Del("ca")
	}
	for name := range query {
		if !slices.Contains(settings[form], name) {
			return nil, errors.New("the Redis URL has a setting other than ca (for rediss), addr (for cluster and sentinel), master_name, username and password (for sentinel)")
		}
	}
	u.Scheme, u.RawQuery = scheme, query.Encode()
	s := &redis.UniversalOptions{TLSConfig: certificates, IsClusterMode: form == "cluster"}
	switch form {
	case "cluster":
		o, err := redis.ParseClusterURL(u.String())
		if err != nil || strings.Trim(u.Path, "/") != "" {
			return nil, errURL
		}
		s.Addrs, s.Username, s.Password = o.Addrs, o.Username, o.Password
	case "sentinel":
		o, err := redis.ParseFailoverURL(u.String())
		if err != nil || o.MasterName == "" {
			return nil, errURL
		}
		s.Addrs, s.MasterName, s.DB, s.Username, s.Password = o.SentinelAddrs, o.MasterName, o.DB, o.Username, o.Password
		s.SentinelUsername, s.SentinelPassword = o.SentinelUsername, o.SentinelPassword
	default:
		o, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, errURL
		}
		s.Addrs, s.DB, s.Username, s.Password = []string{o.Addr}, o.DB, o.Username, o.Password
	}
	if s.Username != "" && s.Password == "" || s.SentinelUsername != "" && s.SentinelPassword == "" {
		return nil, errors.New("the Redis URL has a user without a password; a password alone follows a colon, as in redis://:password@host")
	}
	return s, nil
}

func readAuthorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.New("the Redis URL's ca cannot be read")
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, errors.New("the Redis URL's ca holds no certificate")
	}
	return authorities, nil
}
