package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/mailgate/mailgate/boundedfile"
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

// CheckURL says in one sentence what is wrong with the URL of Options, if anything is.
// It names the part and never repeats a password.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

// parseURL reads where Redis is; Options.URL says how it is written.
func parseURL(text string) (servers, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return servers{}, errors.New("the redis URL has no scheme; write it as redis://host:6379")
	}
	var s servers
	var port string
	base, isTLS := strings.CutPrefix(scheme, "rediss")
	if !isTLS {
		base, found = strings.CutPrefix(scheme, "redis")
	}
	s.tls = isTLS
	switch {
	case found && base == "":
		s.kind, port = standalone, "6379"
	case found && base == "+sentinel":
		s.kind, port = sentinel, "26379"
	case found && base == "+cluster":
		s.kind, port = clustered, "6379"
	default:
		return servers{}, fmt.Errorf("the redis URL's scheme is none of redis, redis+sentinel, redis+cluster, or these with rediss")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	hosts := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		hosts = authority[at+1:]
		if err := s.readUser(authority[:at]); err != nil {
			return servers{}, err
		}
	}
	if err := s.readHosts(hosts, port); err != nil {
		return servers{}, err
	}
	if err := s.readPath(path); err != nil {
		return servers{}, err
	}
	if err := s.readQuery(query); err != nil {
		return servers{}, err
	}
	// The client would log in as nobody then.
	if s.user != "" && s.password == "" || s.sentinelUser != "" && s.sentinelPassword == "" {
		return servers{}, errors.New("the redis URL has a user without a password; a password alone stands behind a colon, as in redis://:password@host")
	}
	return s, nil
}

func (s *servers) readUser(text string) (err error) {
	user, password, _ := strings.Cut(text, ":")
	if s.user, err = url.PathUnescape(user); err != nil {
		return errors.New("the redis URL's user is not percent-encoded")
	}
	if s.password, err = url.PathUnescape(password); err != nil {
		return errors.New("the redis URL's password is not percent-encoded")
	}
	return nil
}

func (s *servers) readHosts(text, port string) error {
	for i, host := range strings.Split(text, ",") {
		address, err := readHost(strings.TrimSpace(host), port)
		if err != nil {
			return fmt.Errorf("the redis URL's host number %d %w", i+1, err)
		}
		s.addresses = append(s.addresses, address)
	}
	if s.kind == standalone && len(s.addresses) > 1 {
		return errors.New("the redis URL names several hosts; is it redis+cluster:// or redis+sentinel://?")
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
	if strings.ContainsAny(host, "/@ ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
		return "", errors.New("is not host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("has a port that is not between 1 and 65535")
	}
	return net.JoinHostPort(host, port), nil
}

func (s *servers) readPath(path string) (err error) {
	if s.kind == sentinel {
		var name string
		name, path, _ = strings.Cut(path, "/")
		if s.master, err = url.PathUnescape(name); err != nil || s.master == "" {
			return errors.New("the redis URL names no master; write it as redis+sentinel://host/master-name")
		}
	}
	if path == "" {
		return nil
	}
	if s.kind == clustered {
		return errors.New("the redis URL names a database; a cluster has only one")
	}
	if s.database, err = strconv.Atoi(path); err != nil || s.database < 0 {
		return errors.New("the redis URL's database is not a number")
	}
	return nil
}

func (s *servers) readQuery(text string) error {
	if strings.Contains(text, "@") {
		return errors.New("the redis URL has a ? or / before the @; percent-encode it in the password")
	}
	query, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("the redis URL's query is not percent-encoded")
	}
	for name, values := range query {
		switch {
		case name == "sentinel_user" && s.kind == sentinel:
			s.sentinelUser = values[0]
		case name == "sentinel_password" && s.kind == sentinel:
			s.sentinelPassword = values[0]
		case name == "ca" && s.tls:
			if err := s.readAuthorities(values[0]); err != nil {
				return err
			}
		default:
			return errors.New("the redis URL has a setting other than ca (for rediss), sentinel_user and sentinel_password (for sentinel)")
		}
	}
	return nil
}

// mostTrustBytes is many times what a file of certificates has, also one with all the
// world's authorities.
const mostTrustBytes = 2 << 20

func (s *servers) readAuthorities(file string) error {
	pem, err := boundedfile.Read(file, mostTrustBytes)
	if err != nil {
		return fmt.Errorf("the redis URL's ca cannot be read: %w", err)
	}
	s.roots = x509.NewCertPool()
	if !s.roots.AppendCertsFromPEM(pem) {
		return errors.New("the redis URL's ca holds no certificate")
	}
	return nil
}

// open makes the client. No call may outlast the timeout and none is repeated: who
// wrote a script knows better what may be. Only masters are asked. Size is the most connections
// to each, 0 the library's own.
func (s servers) open(timeout time.Duration, size int) redis.UniversalClient {
	o := &redis.UniversalOptions{
		Addrs:      s.addresses,
		MasterName: s.master,
		Username:   s.user, Password: s.password,
		SentinelUsername: s.sentinelUser, SentinelPassword: s.sentinelPassword,
		DB:            s.database,
		IsClusterMode: s.kind == clustered,

		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DialerRetries:         1,
		DisableIdentity:       true,

		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if size > 0 {
		const idle = 32
		o.PoolSize = size
		// What a server that lagged has had them take is not kept for good.
		o.MaxIdleConns = idle
	}
	if s.tls {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.roots}
	}
	if s.kind == clustered {
		// Else the first calls would wait for any of the servers to say what commands there
		// are, beyond their own time if it hangs. Ours have one key each.
		c := o.Cluster()
		c.DisableRoutingPolicies = true
		return redis.NewClusterClient(c)
	}
	return redis.NewUniversalClient(o)
}
