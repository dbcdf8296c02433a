package relay_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// trust is a certificate authority and the file by which clients know it.
type trust struct {
	*servertest.Authority
	file string
}

func newTrust(t *testing.T) trust {
	t.Helper()
	authority := servertest.NewAuthority(t)
	return trust{authority, servertest.Write(t, filepath.Join(t.TempDir(), "ca.pem"), string(authority.PEM()))}
}

// server is a TLS configuration for hosts, valid from and until so many hours from now.
func (tr trust) server(from, until int, hosts ...string) *tls.Config {
	now := time.Now()
	at := func(hours int) int64 { return now.Add(time.Duration(hours) * time.Hour).UnixMilli() }
	return &tls.Config{Certificates: []tls.Certificate{tr.Certificate(at(from), at(until), hosts...)}}
}

func (tr trust) good() *tls.Config { return tr.server(-1, 1, "127.0.0.1") }

// address builds a relay URL that trusts this authority.
func (tr trust) address(scheme string, user *url.Userinfo, host string) string {
	u := url.URL{Scheme: scheme, User: user, Host: host, RawQuery: "ca=" + url.QueryEscape(tr.file)}
	return u.String()
}

// password needs percent-encoding, and must never be seen.
const password = "s:3/cr@t? #ü"

func TestTLS_EachCertificate_TrustedOrRefused(t *testing.T) {
	t.Parallel()
	tr, stranger := newTrust(t), newTrust(t)
	other, outdated := tr.server(-1, 1, "mail.example.com"), tr.good()
	outdated.MinVersion, outdated.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for name, c := range map[string]struct {
		config *tls.Config
		query  string // added to the URL
		says   string // "": it is trusted
	}{
		"right":               {tr.good(), "", ""},
		"other name":          {other, "", "127.0.0.1"},
		"other name expected": {other, "&servername=mail.example.com", ""},
		"wrong name expected": {other, "&servername=mail.example.org", "mail.example.org"},
		"expired":             {tr.server(-3, -2, "127.0.0.1"), "", "expired"},
		"not yet valid":       {tr.server(2, 3, "127.0.0.1"), "", "not yet valid"},
		"unknown authority":   {stranger.good(), "", "unknown authority"},
		"names to be shown":   {tr.server(-1, 1, "\x1b[2J\r\naccepted"+strings.Repeat("x", 3000)), "&servername=mail.example.org", "valid for"},
		"outdated TLS":        {outdated, "", "protocol version"},
	} {
		for _, scheme := range []string{"smtps", "smtp"} {
			t.Run(scheme+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := fault.Run(t, fault.Script{TLS: c.config, ImplicitTLS: scheme == "smtps"})
				r := newRelays(t, steady(), tr.address(scheme, nil, s.Addr())+c.query)
				_, err := send(t.Context(), r, letter())
				if c.says == "" {
					checkOutcome(t, err, "")
					return
				}
				checkFailure(t, err, relay.Unavailable, relay.StepTLS, nil)
				said := err.Error() // of which the relay chooses little
				if !strings.Contains(said, c.says) || len(said) > 1000 || strings.ContainsFunc(said, unicode.IsControl) || len(s.Mails()) != 0 {
					t.Errorf("%d emails arrived; %q, want it to say %q", len(s.Mails()), said, c.says)
				}
			})
		}
	}
}

// TestSTARTTLS_EveryFault_NoSecretAndNoMail: whatever happens on the way to TLS, no password and no
// email goes out in the clear, and nothing is shown that is secret.
func TestSTARTTLS_EveryFault_NoSecretAndNoMail(t *testing.T) {
	t.Parallel()
	tr := newTrust(t)
	encode := base64.StdEncoding.EncodeToString
	scripts := []fault.Script{
		{NoSTARTTLS: true}, {NoAUTH: true},
		{At: fault.EHLO, Kind: fault.Permanent}, {At: fault.EHLO, Kind: fault.Permanent, After: 1}, // on TLS
		{At: fault.AUTH, Kind: fault.Permanent, LoginOnly: true}, {At: fault.AUTH, Kind: fault.Echo, LoginOnly: true},
		{At: fault.AUTH, Kind: fault.Echo}, {At: fault.AUTH, Kind: fault.Tell}, {At: fault.AUTH, Kind: fault.Tell, LoginOnly: true}, {At: fault.Handshake, Kind: fault.Silence},
		{At: fault.Handshake, Kind: fault.Reset}, {At: fault.Handshake, Kind: fault.Garbage},
	}
	for kind := range atRCPT {
		scripts = append(scripts, fault.Script{At: fault.STARTTLS, Kind: kind}, fault.Script{At: fault.AUTH, Kind: kind})
	}
	for _, script := range scripts {
		t.Run(fmt.Sprintf("%+v", script), func(t *testing.T) {
			t.Parallel()
			script.TLS = tr.good()
			s := fault.Run(t, script)
			checkSecret(t, facing(script, patience), tr.address("smtp", url.UserPassword("acme", password), s.Addr()),
				password, encode([]byte(password)), encode([]byte("\x00acme\x00"+password)))
			heard := bytes.Join(s.Received(), nil) // nothing, where the relay accepted too late
			if bytes.Contains(heard, []byte("MAIL")) || len(s.Mails()) != 0 {
				t.Errorf("an email was begun: %q", heard)
			}
			if script.At != fault.AUTH && bytes.Contains(heard, []byte("AUTH")) {
				t.Errorf("the password went out: %q", heard)
			}
		})
	}
}

// checkSecret sends an email that must fail, and checks that neither the log nor the error nor the
// relay's text in it shows a secret, and that none of them but the text shows an address.
func checkSecret(t *testing.T, o settings, address string, secrets ...string) {
	t.Helper()
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	_, err := send(t.Context(), newRelays(t, o, address), letter())
	checkOutcome(t, err, relay.Unavailable)
	shown := log.String() + fmt.Sprintf("%v %+v %#v", err, err, err)
	if strings.Contains(shown, "secret.example") {
		t.Errorf("an address is shown: %s", shown)
	}
	if failure, ok := errors.AsType[*relay.Error](err); ok && failure.Reply != nil {
		shown += failure.Reply.Message
	}
	for _, secret := range secrets {
		if strings.Contains(shown, secret) {
			t.Errorf("a secret is shown: %s", shown)
		}
	}
}

// TestLogin_EachMechanism_LogsIn: a line of more than 512 octets waits for the relay to ask for it.
func TestLogin_EachMechanism_LogsIn(t *testing.T) {
	tr := newTrust(t)
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	fits := strings.Repeat("x", 366) // AUTH PLAIN and the end of the line included
	for _, c := range []struct {
		only     bool // LOGIN
		password string
		want     string
	}{
		{false, password, "AUTH PLAIN " + encode("\x00acme\x00"+password) + "\r\n"},
		{false, fits, "AUTH PLAIN " + encode("\x00acme\x00"+fits) + "\r\n"},
		{false, fits + "x", "AUTH PLAIN\r\n" + encode("\x00acme\x00"+fits+"x") + "\r\n"},
		{true, password, "AUTH LOGIN\r\n" + encode("acme") + "\r\n" + encode(password) + "\r\n"},
	} {
		s := fault.Run(t, fault.Script{TLS: tr.good(), LoginOnly: c.only})
		mustSend(t, newRelays(t, steady(), tr.address("smtp", url.UserPassword("acme", c.password), s.Addr())), letter())
		if heard := string(s.Received()[0]); !strings.Contains(heard, c.want) {
			t.Errorf("the relay heard %q, want %q", heard, c.want)
		}
	}
}
