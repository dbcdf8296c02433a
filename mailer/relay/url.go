package relay

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

	"github.com/mailgate/mailgate/internal/boundedfile"
)

// URL is where a relay is and how to speak to it. The zero value is no relay; ParseURL makes
// one. Printed, it shows neither user nor password.
type URL struct {
	mode       security
	host, port string
	// login returns the secrets, if there are any. They are not fields, because fmt prints
	// fields, whatever the methods say, of a URL in an unexported field. With a grant there
	// is no password.
	login      func() (user, password string)
	grant      *grant
	serverName string         // checked against the certificate
	roots      *x509.CertPool // nil: the system's
}

// security is what protects the connection. There is no "if offered": what the URL asks for
// happens, or no mail goes out.
type security int

const (
	implicitTLS security = iota + 1
	startTLS
	noTLS
)

// ParseURL reads one relay's setting:
//
//	smtps://user:pass@host:465    TLS from the first octet (the default port)
//	smtp://user:pass@host:587     STARTTLS, required (the default port)
//	smtp://host:25?tls=none       no TLS (the default port); takes no password
//
// User and password are percent-encoded and may be left out together. With TLS,
// ?ca=/file.pem trusts that file's certificates in place of the system's, and
// ?servername=name checks the certificate against that name. With ?oauth=/file.yaml and a
// user, but no password, it logs in with tokens of OAuth 2; parseGrant says what is in that
// file. Files are read now. Anything else in the query is refused. No error repeats any part
// of the text, since any part may be the secret.
func ParseURL(text string) (URL, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return URL{}, badURL("it is no URL; user and password must be percent-encoded")
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return URL{}, badURL("its query cannot be read")
	}
	r := URL{host: parsed.Hostname(), port: parsed.Port()}
	if err := checkShape(parsed, query); err != nil {
		return URL{}, err
	}
	if err := r.setMode(parsed, query); err != nil {
		return URL{}, err
	}
	if err := r.setFiles(query); err != nil {
		return URL{}, err
	}
	if err := r.setUser(parsed.User); err != nil {
		return URL{}, err
	}
	return r, nil
}

func badURL(why string) error { return errors.New("relay URL: " + why) }

func checkShape(u *url.URL, query url.Values) error {
	if u.Opaque != "" || u.Hostname() == "" {
		return badURL("smtp:// or smtps:// and a host are needed")
	}
	notInNames := func(c rune) bool {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		return !letter && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err != nil && strings.ContainsFunc(u.Hostname(), notInNames) || ip.Zone() != "" {
		return badURL("the host must be an ASCII name or an IP address")
	}
	if u.Path != "" && u.Path != "/" || u.Fragment != "" {
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

// setMode reads the scheme, ?tls and the port.
func (r *URL) setMode(u *url.URL, query url.Values) error {
	plain := query.Get("tls") == "none"
	var port string
	switch {
	case query.Has("tls") && !plain:
		return badURL("tls can be none, or left out")
	case u.Scheme == "smtps" && plain:
		return badURL("smtps and tls=none contradict each other")
	case u.Scheme == "smtps":
		r.mode, port = implicitTLS, "465"
	case u.Scheme == "smtp" && plain:
		r.mode, port = noTLS, "25"
	case u.Scheme == "smtp":
		r.mode, port = startTLS, "587"
	default:
		return badURL("the scheme must be smtp or smtps")
	}
	if r.port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return badURL("the port is empty")
		}
		r.port = port
	}
	if n, err := strconv.ParseUint(r.port, 10, 16); err != nil || n == 0 {
		return badURL("the port must be 1 to 65535")
	}
	return nil
}

// The bounds of files: many times a token server's answer, and ten times what a system
// trusts.
const (
	mostGrantBytes = 64 << 10
	mostTrustBytes = 2 << 20
)

// setFiles reads ?oauth, ?ca and ?servername.
func (r *URL) setFiles(query url.Values) error {
	if file := query.Get("oauth"); file != "" {
		text, err := readWhole(file, mostGrantBytes)
		if err != nil {
			return fmt.Errorf("relay URL: oauth: %w", err)
		}
		if r.grant, err = parseGrant(text); err != nil {
			return fmt.Errorf("relay URL: oauth: %w", err)
		}
	}
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
		text, err := readWhole(file, mostTrustBytes)
		if err != nil {
			return fmt.Errorf("relay URL: ca: %w", err)
		}
		r.roots = x509.NewCertPool()
		if !r.roots.AppendCertsFromPEM(text) {
			return badURL("ca: the file holds no PEM certificate")
		}
	}
	return nil
}

func (r *URL) setUser(user *url.Userinfo) error {
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
func (r URL) Addr() string { return net.JoinHostPort(r.host, r.port) }

// String is the URL without user, password and query, but for whether there is TLS and
// OAuth.
func (r URL) String() string {
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

// Format makes fmt show String for every verb.
func (r URL) Format(state fmt.State, _ rune) {
	_, _ = state.Write([]byte(r.String())) // a write to fmt's own buffer cannot fail
}
