package main

import (
	"fmt"
	"net"
	"net/smtp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
)

// smtpClient is a program or a library of others that sends one email, and what its user is told. CODE stands for
// 550 or 450, and CLASS for its first digit. Quotation marks, which some escape, are left out.
type smtpClient struct {
	name  string
	long  bool     // only make long has it
	needs []string // programs, and files of packages
	run   []string // in testdata/clients, with the recipients as arguments

	refused string // of the only recipient at its limit
	goesOn  bool   // if one of two is refused
	ofTwo   string // of that one
	after   string // of a recipient that the relay refuses, after the text
}

const (
	aLimit = `.7.1 limit hour of this mailbox reached; next email in `
	whole  = "CODE CLASS" + aLimit
	never  = "554 5.1.1 <MAILBOX>: never"
)

var smtpClients = []smtpClient{
	{name: "net/smtp", refused: whole, ofTwo: "550 5" + aLimit, after: never},
	{name: "curl", needs: []string{"curl"}, run: []string{"sh", "curl.sh"},
		refused: "RCPT failed: CODE", ofTwo: "RCPT failed: 550", after: "Weird server reply"},
	{name: "swaks", needs: []string{"swaks"}, run: []string{"sh", "swaks.sh"},
		refused: whole, goesOn: true, ofTwo: "550 5" + aLimit, after: never},
	{name: "msmtp", needs: []string{"msmtp"}, run: []string{"sh", "msmtp.sh"},
		refused: whole, ofTwo: "550 5" + aLimit, after: never},
	{name: "smtplib", needs: []string{"python3"}, run: []string{"python3", "with_smtplib.py"},
		refused: "(CODE, b'CLASS" + aLimit, goesOn: true, ofTwo: "(550, b'5" + aLimit, after: "(554, b'5.1.1 <MAILBOX>: never"},
	{name: "Django", long: true, needs: []string{"/usr/bin/django-admin"}, run: []string{"/usr/bin/python3", "with_django.py"},
		refused: "(CODE, b'CLASS" + aLimit, goesOn: true, after: "(554, b'5.1.1 <MAILBOX>: never"},
	{name: "nodemailer", long: true, needs: []string{"/usr/share/nodejs/nodemailer/package.json"}, run: []string{"node", "nodemailer.cjs"},
		refused: whole, goesOn: true, ofTwo: "550 5" + aLimit, after: never},
	{name: "PHPMailer", long: true, needs: []string{"php", "/usr/share/php/libphp-phpmailer/autoload.php"}, run: []string{"php", "phpmailer.php"},
		refused: "recipients failed: MAILBOX: " + aLimit[5:], goesOn: true, ofTwo: "recipients failed: MAILBOX: " + aLimit[5:], after: "detail:<MAILBOX>: never"},
	{name: "Symfony", long: true, needs: []string{"php", "/usr/share/php/Symfony/Component/Mailer/autoload.php"}, run: []string{"php", "symfony.php"},
		refused: whole, ofTwo: "550 5" + aLimit, after: never},
	{name: "Ruby mail", long: true, needs: []string{"ruby", "/usr/lib/ruby/vendor_ruby/mail.rb"}, run: []string{"ruby", "mail.rb"},
		refused: whole, ofTwo: "550 5" + aLimit, after: never},
	{name: "Jakarta Mail", long: true, needs: []string{"javac", "/usr/share/java/jakarta-mail.jar"},
		run:     []string{"java", "-cp", "/usr/share/java/jakarta-mail.jar:/usr/share/java/jakarta-activation.jar", "Jakarta.java"},
		refused: whole, ofTwo: "invalid [MAILBOX]", after: never},
	{name: "go-mail", long: true, needs: []string{"go"}, run: []string{"go", "run", "-C", "gomail", "."},
		refused: whole, ofTwo: "550 5" + aLimit, after: never},
}

// gone is a domain all of whose mailboxes the relay refuses.
const gone = "gone.example"

// Clients of others sign in and send, tell their user of a limit, a deferral and a refusal of the relay, and
// whether they go on with the rest or give up, each mailbox is charged the emails that it was sent.
func TestSMTPClients_RefusedDeferredOneOfTwo_ToldAndChargedExactly(t *testing.T) {
	relay := fault.Run(t, fault.Script{At: fault.RCPT, Kind: fault.Permanent, To: "@" + gone})
	const late = "late-" + secret
	p := startServer(t, settingsFor(relay.URL(), inMemory, "MAILGATE_API_KEYS=app:"+apiKey+",late:"+late, "MAILGATE_TIERS=hour=1/1h", "MAILGATE_LOOKUP_RATE=0",
		"MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0", "MAILGATE_SUBMISSION_DEFER=late"))
	door := p.awaitLine(t, "serving", "smtp_address")
	ops := newClient(t, p.URL, adminKey)
	check := func(t *testing.T, mailbox string, charged, mails int) {
		t.Helper()
		servertest.Eventually(t, "the charges of "+mailbox, func() bool {
			return len(ops.must(t, "GET", "/admin/mailboxes/"+mailbox, "", 200).Body.Sends) == charged
		})
		got := 0
		for _, mail := range relay.Mails() {
			if mail.To == mailbox && strings.Contains(string(mail.Text), "123456") {
				got++
			}
		}
		if got != mails {
			t.Errorf("%s got %d emails, want %d", mailbox, got, mails)
		}
	}
	t.Run("all", func(t *testing.T) {
		for _, c := range smtpClients {
			t.Run(c.name, func(t *testing.T) {
				c.find(t)
				t.Parallel()
				name := strings.ToLower(strings.NewReplacer(" ", "", "/", "").Replace(c.name))
				alice, bob, carol, dave := name+".alice@example.com", name+".bob@example.com", name+".carol@"+gone, name+".dave@example.com"
				fails := func(user, key, words, mailbox string, to ...string) {
					t.Helper()
					words = strings.ReplaceAll(words, "MAILBOX", mailbox)
					if said, err := c.send(door, user, key, to...); err == nil || !strings.Contains(said, words) {
						t.Errorf("to %v: %v, and it says\n%s\nwant %s", to, err, said, words)
					}
				}
				if said, err := c.send(door, "app", apiKey, alice); err != nil {
					t.Fatalf("%v: %s", err, said)
				}
				check(t, alice, 1, 1)
				fails("app", apiKey, strings.NewReplacer("CODE", "550", "CLASS", "5").Replace(c.refused), alice, alice)
				fails("late", late, strings.NewReplacer("CODE", "450", "CLASS", "4").Replace(c.refused), alice, alice)
				check(t, alice, 1, 1)

				// one of two is refused, whichever comes first
				for i, to := range [][]string{{bob, alice}, {alice, dave}} {
					said, err := c.send(door, "app", apiKey, to...)
					if words := strings.ReplaceAll(c.ofTwo, "MAILBOX", alice); !strings.Contains(said, words) || !c.goesOn && err == nil {
						t.Errorf("to %v: %v, and it says\n%s\nwant %s", to, err, said, words)
					}
					check(t, alice, 1, 1)
					sent := 0
					if c.goesOn {
						sent = 1
					}
					check(t, to[i], sent, sent)
				}

				fails("app", apiKey, c.after, carol, carol)
				check(t, carol, 1, 0)
			})
		}
	})
}

// find skips the test if the client is not here.
func (c *smtpClient) find(t *testing.T) {
	if c.long {
		need.Long(t)
	}
	for _, one := range c.needs {
		if !filepath.IsAbs(one) {
			need.Program(t, one)
		} else if _, err := os.Stat(one); err != nil {
			need.Missing(t, one+" is missing: make long installs it")
		}
	}
}

// send has the client send one email, and returns what it says.
func (c *smtpClient) send(door, user, password string, to ...string) (string, error) {
	host, port, _ := net.SplitHostPort(door)
	if c.run == nil {
		err := smtp.SendMail(door, smtp.PlainAuth("", user, password, host), "no-reply@acme.example", to, []byte(submitted))
		return unquoted(fmt.Sprint(err)), err
	}
	cmd := exec.Command(c.run[0], slices.Concat(c.run[1:], to)...)
	cmd.Dir = "testdata/clients"
	cmd.Env = append(os.Environ(), "SMTP_HOST="+host, "SMTP_PORT="+port, "SMTP_USER="+user, "SMTP_PASSWORD="+password, "NODE_PATH=/usr/share/nodejs")
	said, err := cmd.CombinedOutput()
	return unquoted(string(said)), err
}

func unquoted(said string) string { return strings.NewReplacer(`"`, "", `\`, "").Replace(said) }
