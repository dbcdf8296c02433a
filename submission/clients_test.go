package submission_test

import (
	"net"
	"net/smtp"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/submission"
)

// Real clients sign in and send, and their second email is refused in words that reach the caller.
func TestClients_SendTwice_SecondIsToldTheLimit(t *testing.T) {
	for name, send := range map[string]func(t *testing.T, r *rig) (said string, err error){
		"net/smtp": func(_ *testing.T, r *rig) (string, error) {
			host, _, _ := net.SplitHostPort(r.addr)
			err := smtp.SendMail(r.addr, smtp.PlainAuth("", "app", appSecret, host), "no-reply@acme.example", []string{alice}, []byte(letter))
			if err != nil {
				return err.Error(), err
			}
			return "", nil
		},
		"curl": func(t *testing.T, r *rig) (string, error) {
			text := servertest.Write(t, filepath.Join(t.TempDir(), "text"), letter)
			return output(exec.Command("curl", "-sSv", "smtp://"+r.addr, "--user", "app:"+appSecret, "--mail-from", "no-reply@acme.example", "--mail-rcpt", alice, "-T", text))
		},
		"smtplib": func(_ *testing.T, r *rig) (string, error) {
			host, port, _ := net.SplitHostPort(r.addr)
			return output(exec.Command("python3", "-c", `
import smtplib, sys
host, port, user, password, text = sys.argv[1:]
with smtplib.SMTP(host, int(port)) as s:
    s.login(user, password)
    s.sendmail("no-reply@acme.example", ["alice@example.com"], text)
`, host, port, "app", appSecret, letter))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if program := map[string]string{"curl": "curl", "smtplib": "python3"}[name]; program != "" {
				need.Program(t, program)
			}
			r := start(t, setup{options: func(o *submission.Options) { o.TLS = nil }}) // whose authority they do not know
			if said, err := send(t, r); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			said, err := send(t, r)
			if err == nil || !strings.Contains(said, "of this mailbox reached; next email in") {
				t.Errorf("the second: %v, %s", err, said)
			}
			r.sent(1)
			r.charged(alice, 1)
		})
	}
}

func output(c *exec.Cmd) (string, error) {
	said, err := c.CombinedOutput()
	return string(said), err
}
