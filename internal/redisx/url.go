package redisx

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// CheckURL says in one sentence what is wrong with the URL of Options, if anything is. It
// repeats no part of it.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

// parseURL reads the addresses, the names and passwords, and the certificates to trust.
func parseURL(text string) (*redis.UniversalOptions, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return nil, errors.New("the Redis URL has no scheme; write it as redis://host:6379")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if strings.Contains(rest[end:], "@") {
		return nil, errors.New("the Redis URL has a ? or / before the @; percent-encode it in the password")
	}
	// Several hosts are no part of a usual URL, the rest is.
	hosts := strings.LastIndexByte(rest[:end], '@') + 1
	u, err := url.Parse("redis://" + rest[:hosts] + "host" + rest[end:])
	if err != nil {
		return nil, errors.New("the Redis URL's user, password or path is not percent-encoded")
	}
	s := &redis.UniversalOptions{Username: u.User.Username()}
	s.Password, _ = u.User.Password()
	if strings.HasPrefix(scheme, "rediss") {
		s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	path := strings.TrimPrefix(u.Path, "/")
	switch strings.Replace(scheme, "rediss", "redis", 1) {
	case "redis":
		err = errors.Join(readHosts(s, rest[hosts:end], "6379"), readDatabase(s, path))
		if len(s.Addrs) > 1 {
			err = errors.New("the Redis URL names several hosts; is it redis+cluster:// or redis+sentinel://?")
		}
	case "redis+sentinel":
		s.MasterName, path, _ = strings.Cut(path, "/")
		err = errors.Join(readHosts(s, rest[hosts:end], "26379"), readDatabase(s, path))
		if s.MasterName == "" {
			err = errors.New("the Redis URL names no master; write it as redis+sentinel://host/master-name")
		}
	case "redis+cluster":
		s.IsClusterMode = true
		err = readHosts(s, rest[hosts:end], "6379")
		if path != "" {
			err = errors.New("the Redis URL names a database; a cluster has only one")
		}
	default:
		err = errors.New("the Redis URL's scheme is none of redis, redis+sentinel, redis+cluster, or these with rediss")
	}
	if err == nil {
		err = readQuery(s, u.RawQuery)
	}
	if err == nil && (s.Username != "" && s.Password == "" || s.SentinelUsername != "" && s.SentinelPassword == "") {
		err = errors.New("the Redis URL has a user without a password; a password alone follows a colon, as in redis://:password@host")
	}
	return s, err
}

func readHosts(s *redis.UniversalOptions, text, port string) error {
	for i, host := range strings.Split(text, ",") {
		address, err := readHost(strings.TrimSpace(host), port)
		if err != nil {
			return fmt.Errorf("the Redis URL's host number %d %w", i+1, err)
		}
		s.Addrs = append(s.Addrs, address)
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

func readDatabase(s *redis.UniversalOptions, path string) (err error) {
	if path == "" {
		return nil
	}
	if s.DB, err = strconv.Atoi(path); err != nil || s.DB < 0 {
		return errors.New("the Redis URL's database is not a number")
	}
	return nil
}

func readQuery(s *redis.UniversalOptions, text string) error {
	query, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("the Redis URL's query is not percent-encoded")
	}
	for name, values := range query {
		switch {
		case name == "sentinel_user" && s.MasterName != "":
			s.SentinelUsername = values[0]
		case name == "sentinel_password" && s.MasterName != "":
			s.SentinelPassword = values[0]
		case name == "ca" && s.TLSConfig != nil:
			pem, err := os.ReadFile(values[0])
			if err != nil {
				return errors.New("the Redis URL's ca cannot be read")
			}
			s.TLSConfig.RootCAs = x509.NewCertPool()
			if !s.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
				return errors.New("the Redis URL's ca holds no certificate")
			}
		default:
			return errors.New("the Redis URL has a setting other than ca (for rediss), sentinel_user and sentinel_password (for sentinel)")
		}
	}
	return nil
}
