package mailer

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/boundedfile"
	"github.com/mailgate/mailgate/mailer/oauth"
)

// RelayURL is where a relay is and how to speak to it. The zero value is no
// relay; ParseRelayURL makes one. Printing it shows neither user nor password.
type RelayURL struct {
	mode       security
	host, port string
	// login gives the secrets, if there are any. They are not fields because
	// fmt prints those, whatever the methods say, of a RelayURL that is itself
	// in somebody's unexported field. With a grant there is no password.
	login      func() (user, password string)
	grant      *oauth.Grant
	serverName string         // checked against the certificate
	roots      *x509.CertPool // nil: the system's
}

// security is what protects the connection. There is no "if offered": what
// the URL asks for happens, or no mail goes out.
type security int

const (
	implicitTLS security = iota + 1
	startTLS
	noTLS
)

// ParseRelayURL reads one relay's setting:
//
//	smtps://user:pass@host:465    TLS from the first octet (the default port)
//	smtp://user:pass@host:587     STARTTLS, required (the default port)
//	smtp://host:25?tls=none       no TLS (the default port); takes no password
//
// User and password are percent-encoded and may be left out together. With
// TLS, ?ca=/file.pem trusts that file's certificates instead of the system's
// and ?servername=name checks the certificate against that name. With
// ?oauth=/file.yaml and a user, but no password, it logs in with tokens by
// OAuth 2; oauth.ParseGrant says what is in that file. Files are read now.
// Anything else in the query is refused. No error repeats any part of the text,
// since any part may be the secret.
func ParseRelayURL(text string) (RelayURL, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return RelayURL{}, badURL("it is no URL; user and password must be percent-encoded")
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return RelayURL{}, badURL("its query cannot be read")
	}
	r := RelayURL{host: parsed.Hostname(), port: parsed.Port()}
	for _, step := range []func() error{
		func() error { return checkShape(parsed, query) },
		func() error { return r.setMode(parsed.Scheme, query) },
		func() error { return r.setPort(parsed.Host) },
		func() error { return r.setGrant(query.Get("oauth")) },
		func() error { return r.setUser(parsed.User) },
		func() error { return r.setTrust(query) },
	} {
		if err := step(); err != nil {
			return RelayURL{}, err
		}
	}
	return r, nil
}

func badURL(why string) error { return errors.New("relay URL: " + why) }

// isHostName takes ASCII names; others must be written as IDNA does.
func isHostName(host string) bool {
	return !strings.ContainsFunc(host, func(c rune) bool {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		return !letter && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	})
}

func checkShape(u *url.URL, query url.Values) error {
	if u.Opaque != "" || u.Hostname() == "" {
		return badURL("smtp:// or smtps:// and a host are needed")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); (err != nil && !isHostName(u.Hostname())) || ip.Zone() != "" {
		return badURL("the host must be an ASCII name or an IP address")
	}
	if (u.Path != "" && u.Path != "/") || u.Fragment != "" {
		return badURL("nothing may follow the port but a query; a / or # in a password must be percent-encoded")
	}
	for key, values := range query {
		if key != "tls" && key != "ca" && key != "servername" && key != "oauth" {
			return badURL("the query knows tls, ca, servername and oauth only")
		}
		if len(values) > 1 || values[0] == "" {
			return badURL(key + " needs exactly one value")
		}
	}
	return nil
}

func (r *RelayURL) setMode(scheme string, query url.Values) error {
	plain := query.Get("tls") == "none"
	if query.Has("tls") && !plain {
		return badURL("tls can be none, or left out")
	}
	switch {
	case scheme == "smtps" && plain:
		return badURL("smtps and tls=none contradict each other")
	case scheme == "smtps":
		r.mode = implicitTLS
	case scheme == "smtp" && plain:
		r.mode = noTLS
	case scheme == "smtp":
		r.mode = startTLS
	default:
		return badURL("the scheme must be smtp or smtps")
	}
	return nil
}

func (r *RelayURL) setPort(hostport string) error {
	if r.port == "" {
		if strings.HasSuffix(hostport, ":") {
			return badURL("the port is empty")
		}
		r.port = map[security]string{implicitTLS: "465", startTLS: "587", noTLS: "25"}[r.mode]
	}
	if port, err := strconv.ParseUint(r.port, 10, 16); err != nil || port == 0 {
		return badURL("the port must be 1 to 65535")
	}
	return nil
}

// mostGrantBytes is many times what a token server gives to be kept in such a file.
const mostGrantBytes = 64 << 10

func (r *RelayURL) setGrant(file string) error {
	if file == "" {
		return nil
	}
	text, err := readWhole(file, mostGrantBytes)
	if err != nil {
		return fmt.Errorf("relay URL: oauth: %w", err)
	}
	grant, err := oauth.ParseGrant(text)
	if err != nil {
		return fmt.Errorf("relay URL: %w", err)
	}
	r.grant = &grant
	return nil
}

func (r *RelayURL) setUser(user *url.Userinfo) error {
	if user == nil && r.grant == nil {
		return nil
	}
	name := user.Username()
	password, _ := user.Password()
	switch {
	case r.grant != nil && (name == "" || password != ""):
		return badURL("oauth needs a user, and no password")
	case r.grant == nil && (name == "" || password == ""):
		return badURL("user and password come together, or not at all")
	case strings.ContainsRune(name+password, 0), r.grant != nil && strings.ContainsRune(name, 1): // what AUTH puts between them
		return badURL("user and password cannot hold a NUL, nor a user with oauth a Ctrl-A")
	case r.mode == noTLS:
		return badURL("a password would cross the network in the clear; use TLS or leave it out")
	}
	r.login = func() (string, string) { return name, password }
	return nil
}

func (r *RelayURL) setTrust(query url.Values) error {
	if r.mode == noTLS {
		if query.Has("ca") || query.Has("servername") {
			return badURL("ca and servername mean nothing without TLS")
		}
		return nil
	}
	r.serverName = r.host
	if name := query.Get("servername"); name != "" {
		r.serverName = name
	}
	if file := query.Get("ca"); file != "" {
		roots, err := readRoots(file)
		if err != nil {
			return fmt.Errorf("relay URL: ca: %w", err)
		}
		r.roots = roots
	}
	return nil
}

// mostTrustBytes is ten times the whole of what a system trusts.
const mostTrustBytes = 2 << 20

func readRoots(file string) (*x509.CertPool, error) {
	text, err := readWhole(file, mostTrustBytes)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("the file holds no PEM certificate")
	}
	return roots, nil
}

// readWhole reads a file that the URL names.
func readWhole(file string, most int64) ([]byte, error) {
	// Looked at before it is opened: opening a named pipe would wait for ever.
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("there is no such file")
	}
	text, err := boundedfile.Read(file, most)
	if err != nil { // whose text has the path
		return nil, fmt.Errorf("the file cannot be read, or is larger than %d bytes", most)
	}
	return text, nil
}

// Addr is the relay's host and port.
func (r RelayURL) Addr() string { return net.JoinHostPort(r.host, r.port) }

// String is the URL without user, password and query, but for whether there is TLS
// and OAuth.
func (r RelayURL) String() string {
	byToken := ""
	if r.grant != nil {
		byToken = "?oauth=***"
	}
	switch r.mode {
	case implicitTLS:
		return "smtps://" + r.Addr() + byToken
	case startTLS:
		return "smtp://" + r.Addr() + byToken
	case noTLS:
		return "smtp://" + r.Addr() + "?tls=none"
	}
	return "no relay"
}

// Format makes fmt show String, whatever the verb.
func (r RelayURL) Format(state fmt.State, _ rune) {
	// A write to fmt's own buffer cannot fail.
	_, _ = state.Write([]byte(r.String()))
}
