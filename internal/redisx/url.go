package redisx

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// servers is where Redis is.
type servers struct {
	kind      kind
	addresses []string
	master    string // the name by which Sentinel knows the master
	user      string
	password  string
	database  int
	tls       bool
	roots     *x509.CertPool // nil for the system's

	sentinelUser     string
	sentinelPassword string
}

type kind int

const (
	standalone kind = iota
	sentinel
	clustered
)

// schemes are the URL schemes without the s of rediss, and their usual ports.
var schemes = map[string]struct {
	kind kind
	port string
}{
	"redis": {standalone, "6379"}, "redis+sentinel": {sentinel, "26379"}, "redis+cluster": {clustered, "6379"},
}

// CheckURL says in one sentence what is wrong with the URL of Options, if anything is. It
// repeats no part of it.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

func parseURL(text string) (s servers, err error) {
	name, rest, found := strings.Cut(text, "://")
	if !found {
		return s, errors.New("the Redis URL has no scheme; write it as redis://host:6379")
	}
	s.tls = strings.HasPrefix(name, "rediss")
	scheme, known := schemes[strings.Replace(name, "rediss", "redis", 1)]
	if !known {
		return s, errors.New("the Redis URL's scheme is none of redis, redis+sentinel, redis+cluster, or these with rediss")
	}
	s.kind = scheme.kind
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if strings.Contains(rest[end:], "@") {
		return s, errors.New("the Redis URL has a ? or / before the @; percent-encode it in the password")
	}
	hosts := strings.LastIndexByte(rest[:end], '@') + 1
	if err := s.readHosts(rest[hosts:end], scheme.port); err != nil {
		return s, err
	}
	// Several hosts are no part of a usual URL, the rest is.
	u, err := url.Parse("redis://" + rest[:hosts] + "host" + rest[end:])
	if err != nil {
		return s, errors.New("the Redis URL's user, password or path is not percent-encoded")
	}
	s.user = u.User.Username()
	s.password, _ = u.User.Password()
	if err := s.readPath(strings.TrimPrefix(u.Path, "/")); err != nil {
		return s, err
	}
	if err := s.readQuery(u.RawQuery); err != nil {
		return s, err
	}
	if s.user != "" && s.password == "" || s.sentinelUser != "" && s.sentinelPassword == "" {
		return s, errors.New("the Redis URL has a user without a password; a password alone follows a colon, as in redis://:password@host")
	}
	return s, nil
}

func (s *servers) readHosts(text, port string) error {
	for i, host := range strings.Split(text, ",") {
		address, err := readHost(strings.TrimSpace(host), port)
		if err != nil {
			return fmt.Errorf("the Redis URL's host number %d %w", i+1, err)
		}
		s.addresses = append(s.addresses, address)
	}
	if s.kind == standalone && len(s.addresses) > 1 {
		return errors.New("the Redis URL names several hosts; is it redis+cluster:// or redis+sentinel://?")
	}
	return nil
}

func readHost(text, port string) (string, error) {
	host := text
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if host == "" {
		return "", errors.New("is empty")
	}
	if strings.Contains(host, " ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
		return "", errors.New("is not host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("has a port that is not between 1 and 65535")
	}
	return net.JoinHostPort(host, port), nil
}

func (s *servers) readPath(path string) (err error) {
	if s.kind == sentinel {
		if s.master, path, _ = strings.Cut(path, "/"); s.master == "" {
			return errors.New("the Redis URL names no master; write it as redis+sentinel://host/master-name")
		}
	}
	if path == "" {
		return nil
	}
	if s.kind == clustered {
		return errors.New("the Redis URL names a database; a cluster has only one")
	}
	if s.database, err = strconv.Atoi(path); err != nil || s.database < 0 {
		return errors.New("the Redis URL's database is not a number")
	}
	return nil
}

func (s *servers) readQuery(text string) error {
	query, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("the Redis URL's query is not percent-encoded")
	}
	for name, values := range query {
		switch {
		case name == "sentinel_user" && s.kind == sentinel:
			s.sentinelUser = values[0]
		case name == "sentinel_password" && s.kind == sentinel:
			s.sentinelPassword = values[0]
		case name == "ca" && s.tls:
			pem, err := os.ReadFile(values[0])
			if err != nil {
				return errors.New("the Redis URL's ca cannot be read")
			}
			s.roots = x509.NewCertPool()
			if !s.roots.AppendCertsFromPEM(pem) {
				return errors.New("the Redis URL's ca holds no certificate")
			}
		default:
			return errors.New("the Redis URL has a setting other than ca (for rediss), sentinel_user and sentinel_password (for sentinel)")
		}
	}
	return nil
}
