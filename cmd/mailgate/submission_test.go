package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

const submitted = "From: Acme <no-reply@acme.example>\r\nTo: alice@example.com\r\nSubject: reset\r\n\r\n123456\r\n"

// submit sends an email to alice through the SMTP door.
func submit(address string) error {
	host, _, _ := net.SplitHostPort(address)
	return smtp.SendMail(address, smtp.PlainAuth("", "app", apiKey, host), "no-reply@acme.example", []string{"alice@example.com"}, []byte(submitted))
}

// Both doors have the same limits, figures, log and shutdown.
func TestServe_SMTPDoor_SharesLimitsWithHTTP(t *testing.T) {
	relay := startRelay(t)
	p := startServer(t, settingsFor(relay.URL(), inMemory, "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0"))
	at := p.awaitLine(t, "serving", "smtp_address")
	must.OK(t, submit(at))
	if err := submit(at); err == nil || !strings.HasPrefix(err.Error(), "550") || !strings.Contains(err.Error(), "of this mailbox reached; next email in") {
		t.Errorf("the second email: %v", err)
	}
	servertest.Eventually(t, "the connections have ended", func() bool { return p.shows(t, "mailgate_smtp_connections 0") })
	app := newClient(t, p.URL, apiKey)
	app.must(t, "POST", "/send-code", `{"email":"Alice@example.com"}`, 429)
	metrics := app.must(t, "GET", "/metrics", "", 200).Raw
	for _, want := range []string{
		`mailgate_sends_total{door="smtp",limit="",outcome="sent",rule=""} 1`,
		`mailgate_sends_total{door="smtp",limit="minute",outcome="quota-exceeded",rule="mailbox"} 1`,
		`mailgate_sends_total{door="http",limit="minute",outcome="quota-exceeded",rule="mailbox"} 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	servertest.Eventually(t, "the refusal over HTTP is logged", func() bool { return len(p.Log.Lines(`"problem":"quota-exceeded"`)) == 1 })
	lines := p.Log.Lines(`"msg":"submission"`)
	if len(lines) != 2 || lines[0]["outcome"] != "sent" || lines[1]["limit"] != "minute" || lines[0]["key"] != "app" {
		t.Errorf("the log has %v", lines)
	}
	for name := range p.Log.Lines(`"problem":"quota-exceeded"`)[0] {
		if _, has := lines[1][name]; !has && name != "route" && name != "problem" {
			t.Errorf("the log of the door lacks %q: %v", name, lines[1])
		}
	}
	if len(relay.List()) != 1 {
		t.Errorf("%d emails", len(relay.List()))
	}
	if status := p.Stop(t, syscall.SIGTERM); status != exitOK {
		t.Errorf("exit status %d", status)
	}
}

// guess sends wrong passwords, and returns how many the door has compared.
func guess(t testing.TB, at string, tries int) (guesses int) {
	t.Helper()
	c := must.Get(textproto.Dial("tcp", at))(t)
	defer c.Close()
	must.Get(c.Cmd("%s", "EHLO client.example"+strings.Repeat("\r\nAUTH PLAIN AGFwcAB3cm9uZw==", tries)))(t) // app, wrong
	for {
		line, err := c.ReadLine()
		if err != nil {
			return guesses
		}
		if strings.HasPrefix(line, "535") {
			guesses++
		}
	}
}

// Wrong passwords and wrong keys of one address are counted together, and no right one is refused for them.
func TestServe_SMTPDoor_WrongKeysAreCountedWithHTTP(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		guesses []int // of each connection
		http    int
	}{
		"by SMTP first": {[]int{3, 2, 1}, 429},
		"by HTTP first": {[]int{1, 1}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relay := startRelay(t)
			p := startServer(t, settingsFor(relay.URL(), inMemory, "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0", "MAILGATE_LOOKUP_RATE=1"))
			at, wrong := p.awaitLine(t, "serving", "smtp_address"), newClient(t, p.URL, "wrong")
			if tt.http == 401 {
				for range 4 { // seconds' worth may come at once
					wrong.must(t, "GET", "/mailboxes/alice@example.com", "", 401)
				}
			}
			for i, want := range tt.guesses {
				if got := guess(t, at, 5); got != want {
					t.Errorf("connection %d could guess %d times, want %d", i, got, want)
				}
			}
			wrong.must(t, "GET", "/mailboxes/alice@example.com", "", 429)
			must.OK(t, submit(at))
			newClient(t, p.URL, apiKey).must(t, "GET", "/mailboxes/bob@example.com", "", 200)
		})
	}
}

// Where lookups have no limit, wrong keys still have one, at both doors.
func TestServe_LookupsWithoutLimit_WrongKeysHaveOne(t *testing.T) {
	t.Parallel()
	relay := startRelay(t)
	p := startServer(t, settingsFor(relay.URL(), inMemory, "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0", "MAILGATE_LOOKUP_RATE=0"))
	at, wrong := p.awaitLine(t, "serving", "smtp_address"), newClient(t, p.URL, "wrong")
	tries, began := 0, time.Now() // began: before the try that was one too many
	for must.Get(wrong.ask("GET", "/mailboxes/alice@example.com", "", nil))(t).Status == 401 {
		if tries++; tries > 2000 {
			t.Fatal("wrong keys have no limit")
		}
		began = time.Now()
	}
	if got := guess(t, at, 5); got > 2+int(time.Since(began)/(20*time.Millisecond)) { // each fiftieth of a second lets one more through
		t.Errorf("a connection could guess %d times", got)
	}
	must.OK(t, submit(at))
}

// A certificate that is replaced is shown after SIGHUP, and one that cannot be read changes nothing.
func TestServe_SMTPDoor_CertificateIsReadAgain(t *testing.T) {
	relay, dir := startRelay(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority := servertest.NewAuthority(t)
	write := func(host string) {
		now := time.Now().UnixMilli()
		writeCertificate(t, authority.Certificate(now-3600_000, now+3600_000, "127.0.0.1", host), cert, key)
	}
	write("first.example")
	p := startServer(t, settingsFor(relay.URL(), inMemory, "MAILGATE_SUBMISSION_LISTEN=smtps://127.0.0.1:0",
		"MAILGATE_SUBMISSION_TLS_CERT="+cert, "MAILGATE_SUBMISSION_TLS_KEY="+key))
	at := p.awaitLine(t, "serving", "smtp_address")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	shown := func() string {
		c := must.Get(tls.Dial("tcp", at, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}))(t)
		defer c.Close()
		return fmt.Sprint(c.ConnectionState().PeerCertificates[0].DNSNames)
	}
	if got := shown(); got != "[first.example]" {
		t.Fatalf("it shows %s", got)
	}
	servertest.Write(t, cert, "no certificate")
	p.Signal(t, syscall.SIGHUP)
	p.awaitLine(t, "reload failed; keeping the current rules, templates and certificate", "error")
	if got := shown(); got != "[first.example]" {
		t.Errorf("it shows %s", got)
	}
	write("second.example")
	p.Signal(t, syscall.SIGHUP)
	servertest.Eventually(t, "the second is shown", func() bool { return shown() == "[second.example]" })
}

// Each setting of the door is in force, at several addresses.
func TestServe_SMTPDoor_EachSetting_InForce(t *testing.T) {
	t.Parallel()
	dir, authority, now := t.TempDir(), servertest.NewAuthority(t), time.Now().UnixMilli()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, authority.Certificate(now-3600_000, now+3600_000, "127.0.0.1"), cert, key)
	relay := startRelay(t)
	p := startServer(t, settingsFor(relay.URL(), inMemory, "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0,smtps://127.0.0.1:0",
		"MAILGATE_SUBMISSION_TLS_CERT="+cert, "MAILGATE_SUBMISSION_TLS_KEY="+key, "MAILGATE_SUBMISSION_DEFER=app",
		"MAILGATE_SUBMISSION_MAX_BYTES=2KiB", "MAILGATE_SUBMISSION_MAX_CONNECTIONS=2"))
	plain, implicit, _ := strings.Cut(p.awaitLine(t, "serving", "smtp_address"), ",")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM())
	encrypted := must.Get(tls.Dial("tcp", implicit, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}))(t)
	c := must.Get(smtp.NewClient(encrypted, "127.0.0.1"))(t)
	must.OK(t, c.Auth(smtp.PlainAuth("", "app", apiKey, "127.0.0.1")))
	if _, size := c.Extension("SIZE"); size != "2048" {
		t.Errorf("SIZE %s", size)
	}
	if err := c.Mail("ceo@acme.example"); err == nil || err.Error() != `553 "5.7.1 this sender is not allowed; MAILGATE_SUBMISSION_SENDERS lists those that are"` {
		t.Errorf("a sender that is not MAILGATE_FROM: %v", err)
	}
	openDoor(t, plain, "421 4.3.2") // a key has half of two connections
	must.OK(t, c.Quit())
	servertest.Eventually(t, "the connections have ended", func() bool { return p.shows(t, "mailgate_smtp_connections 0") })
	again := openDoor(t, plain, "235")
	again.to("alice@example.com", "250")
	again.text("250")
	again.to("alice@example.com", "450 4.7.1")
}

// writeCertificate writes a certificate and its key to two files.
func writeCertificate(t *testing.T, made tls.Certificate, cert, key string) {
	t.Helper()
	private := must.Get(x509.MarshalPKCS8PrivateKey(made.PrivateKey))(t)
	servertest.Write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]})))
	servertest.Write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// dev has the door on, prints it, and the inbox shows which door an email came through.
func TestDev_SMTPDoor_IsPrintedAndShown(t *testing.T) {
	page, stdout := startDev(t, nil, anyPort, "--submission-listen=127.0.0.1:0", "--submission-senders=@dev.example,@acme.example")
	found := regexp.MustCompile(`SMTP +(\S+), no password, sender`).FindStringSubmatch(stdout.String())
	if found == nil {
		t.Fatal(stdout)
	}
	must.OK(t, smtp.SendMail(found[1], nil, "no-reply@acme.example", []string{"alice@example.com"}, []byte(submitted)))
	page.must(t, "POST", "/send-code", `{"email":"bob@example.com"}`, 200)
	list := page.must(t, "GET", "/demo/mails?after=0", "", 200).Raw
	if !strings.Contains(list, `"door":"SMTP"`) || !strings.Contains(list, `"door":"HTTP"`) {
		t.Errorf("the inbox: %s", list)
	}
	host, port, _ := net.SplitHostPort(found[1])
	want := fmt.Sprintf(`{"host":%q,"port":%q,"user":"","senders":"@dev.example,@acme.example"}`, host, port)
	if how := page.must(t, "GET", "/demo/smtp", "", 200).Raw; strings.TrimSpace(how) != want {
		t.Errorf("the page reads %s, want %s", how, want)
	}
	c := must.Get(smtp.Dial(found[1]))(t)
	must.OK(t, c.Mail("no-reply@acme.example"))
	must.OK(t, c.Rcpt("carol@example.com"))
	must.OK(t, c.Quit())
	servertest.Eventually(t, "dev prints the abandoned email", func() bool {
		return regexp.MustCompile(`smtp +carol@example.com +- abandoned`).MatchString(stdout.String())
	})
	servertest.Eventually(t, "dev prints the send", func() bool {
		return regexp.MustCompile(`smtp +alice@example.com +250 sent`).MatchString(stdout.String())
	})
}
