package relay

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"golang.org/x/oauth2/clientcredentials"

	"github.com/mailgate/mailgate/internal/boundedfile"
)

// URL is where a relay is and how to speak to it; ParseURL makes one. Printed, it shows
// neither user nor password.
type URL struct {
	mode       security
	host, port string
	serverName string         // checked against the certificate
	roots      *x509.CertPool // nil: the system's
	// login returns the secrets, if there are any. They are not a field, because fmt prints
	// fields, whatever the methods say, of a URL in an unexported field.
	login  func() login
	hidden error // as Hidden returns it
}

// login is how to log in: with the password, or with tokens where there is a grant.
type login struct {
	user, password string
	oauth          *clientcredentials.Config
}

// security is what protects the connection. There is no "if offered": what the URL asks for
// happens, or no email goes out.
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
// ?ca=/file.pem trusts that file's certificates instead of the system's, and
// ?servername=name checks the certificate against that name. With ?oauth=/file.yaml and a
// user, but no password, it logs in with tokens of OAuth 2; parseGrant says what is in that
// file. Files are read now. Anything else in the query is refused. No error repeats any part
// of the text, since any part may be the secret.
func ParseURL(text string) (r URL, err error) {
	if !strings.Contains(text, "://") {
		return r, errNoScheme
	}
	u, err := url.Parse(text)
	if err != nil {
		return r, errors.New("it is not a URL; user and password must be percent-encoded")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return r, errors.New("its query cannot be read")
	}
	if err := checkShape(u, query); err != nil {
		return r, err
	}
	var port string
	switch u.Scheme + " " + query.Get("tls") {
	case "smtps ":
		r.mode, port = implicitTLS, "465"
	case "smtp ":
		r.mode, port = startTLS, "587"
	case "smtp none":
		r.mode, port = noTLS, "25"
	default:
		return r, errors.New("the scheme must be smtps, or smtp, alone or with tls=none")
	}
	r.host, r.port = u.Hostname(), cmp.Or(u.Port(), port)
	if n, err := strconv.ParseUint(r.port, 10, 16); err != nil || n == 0 || strings.HasSuffix(u.Host, ":") {
		return r, errors.New("the port must be 1 to 65535")
	}
	if err := r.setTrust(query); err != nil {
		return r, err
	}
	return r, r.setLogin(u.User, query.Get("oauth"))
}

var errNoScheme = errors.New("write it as smtps://user:password@host or smtp://host:port")

func checkShape(u *url.URL, query url.Values) error {
	if u.Opaque != "" || u.Hostname() == "" {
		return errNoScheme
	}
	rest := strings.Trim(u.Hostname(), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")
	if ip, err := netip.ParseAddr(u.Hostname()); err != nil && rest != "" || ip.Zone() != "" {
		return errors.New("the host must be an ASCII name or an IP address")
	}
	if u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return errors.New("only a query may follow the port; a / or # in a password must be percent-encoded")
	}
	for key, values := range query {
		if key != "tls" && key != "ca" && key != "servername" && key != "oauth" {
			return errors.New("the query may have tls, ca, servername and oauth only")
		}
		if len(values) > 1 || values[0] == "" {
			return errors.New(key + " needs exactly one value")
		}
	}
	return nil
}

// The bounds of files: many times a token server's answer, and ten times what a system
// trusts.
const (
	mostGrantBytes = 64 << 10
	mostTrustBytes = 2 << 20
)

// setTrust reads ?ca and ?servername.
func (r *URL) setTrust(query url.Values) error {
	if r.mode == noTLS {
		if query.Has("ca") || query.Has("servername") {
			return errors.New("ca and servername need TLS")
		}
		return nil
	}
	r.serverName = cmp.Or(query.Get("servername"), r.host)
	if !query.Has("ca") {
		return nil
	}
	text, err := readWhole(query.Get("ca"), mostTrustBytes)
	if err != nil {
		return fmt.Errorf("ca: %w", err)
	}
	r.roots = x509.NewCertPool()
	if !r.roots.AppendCertsFromPEM(text) {
		return errors.New("ca: the file holds no PEM certificate")
	}
	return nil
}

// setLogin reads the user, with a password or with the file of ?oauth.
func (r *URL) setLogin(user *url.Userinfo, file string) error {
	l := login{user: user.Username()}
	l.password, _ = user.Password()
	if file != "" {
		text, err := readWhole(file, mostGrantBytes)
		switch {
		case err == nil:
			l.oauth, err = parseGrant(text)
		case boundedfile.Hidden(file):
			l.oauth, r.hidden, err = &clientcredentials.Config{}, fmt.Errorf("oauth: %w", err), nil
		}
		if err != nil {
			return fmt.Errorf("oauth: %w", err)
		}
	}
	switch {
	case user == nil && file == "":
		return nil
	case file != "" && (l.user == "" || l.password != ""):
		return errors.New("oauth needs a user, and no password")
	case file == "" && (l.user == "" || l.password == ""):
		return errors.New("user and password must be given together")
	case strings.ContainsAny(l.user+l.password, "\x00\x01"): // what AUTH puts between them
		return errors.New("user and password must not contain NUL or Ctrl-A")
	case r.mode == noTLS:
		return errors.New("the password would be sent in clear text; use TLS or leave it out")
	}
	r.login = func() login { return l }
	return nil
}

// readWhole reads a file that the URL names.
func readWhole(file string, most int64) ([]byte, error) {
	// Checked before it is opened: opening a named pipe would block forever.
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("the file does not exist, or is not a regular file")
	}
	text, err := boundedfile.Read(file, most)
	if err != nil { // whose text has the path
		return nil, fmt.Errorf("the file cannot be read, or is larger than %d bytes", most)
	}
	return text, nil
}

// Hidden returns an error if systemd passes the file of ?oauth to the running service alone, so that it was not read.
// New takes no such URL.
func (r URL) Hidden() error { return r.hidden }

// Addr returns the relay's host and port.
func (r URL) Addr() string { return net.JoinHostPort(r.host, r.port) }

// String returns the URL without user, password and query, but for whether there is TLS and
// OAuth.
func (r URL) String() string {
	scheme, query := "smtp://", ""
	switch r.mode {
	case implicitTLS:
		scheme = "smtps://"
	case noTLS:
		query = "?tls=none"
	}
	if r.login != nil && r.login().oauth != nil {
		query = "?oauth=***"
	}
	return scheme + r.Addr() + query
}

// Format makes fmt show String for every verb.
func (r URL) Format(state fmt.State, _ rune) {
	_, _ = state.Write([]byte(r.String())) // a write to fmt's own buffer cannot fail
}
