package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/cmd/mailgate/demo"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// devFlags are the settings that make sense for a trial; dev decides the others.
var devFlags = []string{"keys", "listen", "tiers", "rules", "guesses", "fold", "from", "templates", "locale", "code-life", "log-level", "log-format", "submission-listen", "submission-senders",
	"hook-supabase", "hook-supabase-url", "hook-logto", "hook-logto-url"}

type devCommand struct {
	Keys bool `help:"Ask for keys, made for this run. Without this flag every program on this machine may call."`
}

func (devCommand) Help() string {
	return `Serves, on this machine only, the real API, a sign-up page that uses it, and an inbox that shows the emails. They go by real SMTP to a built-in relay in the same process, which delivers nothing. All records are in memory and end with the command.

It prints one line for each send, refusal and check of a code. The log has warnings, errors and resets only; --log-level info adds a line for each request.

The port is 8080, or the next one that is free. It reads no settings file, and of the environment only MAILGATE_RULES. Flags of dev: --` + strings.Join(devFlags, " --") + `

	mailgate dev --tiers quick=1/10s,short=3/1m
	mailgate dev --rules rules.yaml --log-level info`
}

func (d devCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	inbox, err := sandbox.Start(sandbox.Options{})
	if err != nil {
		return fmt.Errorf("starting the built-in relay: %w", err)
	}
	defer inbox.Close()
	if err := devSettings(c, inbox.URL()); err != nil {
		return err
	}
	if d.Keys {
		c.APIKeys, c.AdminKeys = config.MakeKey(devUser), config.MakeKey("operator")
	}
	var at listeners
	defer at.close()
	if err := at.open(c); err != nil {
		return err
	}
	front := at.main // of the pages, which ask the program
	defer front.Close()
	if at.main, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	out := newLogOutput(to.err)
	defer out.close()
	log := newLogging(c, out)
	log.outcomes = printed{log.outcomes, to}
	p, err := build(ctx, c, log)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	host, port, _ := net.SplitHostPort(at.doors[0].Listener.Addr().String()) // it has both
	smtp := demo.SMTP{Host: host, Port: port, Senders: c.SMTPSenders().String()}
	if d.Keys {
		smtp.User = devUser
	}
	pages := &http.Server{
		Handler: demo.New(demo.Options{
			Address: at.main.Addr().String(), APIKey: c.APIKeys.First(), AdminKey: c.AdminKeys.First(), Relay: inbox, Ended: ctx, SMTP: smtp,
		}),
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelError),
	}
	failed := make(chan error, 1)
	go func() {
		defer end()
		failed <- pages.Serve(front)
	}()
	welcome(p, to, front.Addr(), at, inbox.URL())
	err = p.serve(ctx, at, nil)
	over, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = pages.Shutdown(over) // mailgate has answered; what is left are slow browsers
	if why := <-failed; why != http.ErrServerClosed {
		err = errors.Join(fmt.Errorf("serving the pages: %w", why), err)
	}
	return err
}

// devUser is the name of the API key.
const devUser = "signup"

// devSettings checks the flags of dev, and adds the built-in relay.
func devSettings(c *config.Config, relayURL string) error {
	if err := c.Together(); err != nil {
		return err
	}
	if name := c.OtherFlag(devFlags); name != "" {
		return c.Complain(name, "cannot be set for dev; see mailgate dev --help")
	}
	if !c.Loopback() {
		return c.Complain("listen", "dev serves this machine only; give a loopback address such as 127.0.0.1:8080")
	}
	if len(c.SubmissionListen) == 0 {
		c.SubmissionListen = config.Doors{{Addr: "127.0.0.1:2525"}}
	}
	if slices.ContainsFunc(c.SubmissionListen, func(d config.Door) bool { return !d.Private() }) {
		return c.Complain("submission-listen", "dev serves this machine only; give a loopback address such as 127.0.0.1:2525")
	}
	url, err := relay.ParseURL(relayURL)
	c.SMTPURL = config.Relays{url}
	return err
}

// welcome says where to look, and how to send a request by hand.
func welcome(p *program, to streams, pages net.Addr, at listeners, relayURL string) {
	c, another, smtp, keys, header := p.config, "", "no password", "", ""
	if key := c.APIKeys.First(); key != "" {
		smtp = "user " + devUser + ", password: the API key"
		keys = fmt.Sprintf("\n  API key     %s\n  Admin key   %s", key, c.AdminKeys.First())
		header = fmt.Sprintf(" -H 'Authorization: Bearer %s'", key)
	}
	if !c.Given("listen") && pages.String() != c.Listen {
		another = fmt.Sprintf("\n  %s is in use, so this is the next free port.\n", c.Listen)
	}
	calls := ""
	for _, name := range hooks.Names(c.Hooks()) {
		calls += fmt.Sprintf("\n  Hook        http://%s/hooks/%s", pages, name)
	}
	fmt.Fprintf(to.out, `
  mailgate dev
%[6]s
  Sign up     %[1]s/
  Inbox       %[1]s/inbox
  Console     %[1]s/admin
  API         %[1]s/docs
  SMTP        %[8]s, %[9]s, sender %[10]s%[11]s
%[2]s
  Relay       %[4]s (keeps emails, delivers nothing)
  Limits      %[5]s
  Rules       %[7]s

  Try it:
  curl %[1]s/send-code%[3]s \
    -H 'Content-Type: application/json' -d '{"email":"alice@example.com"}'

  Ctrl-C stops it and discards all records.

`, "http://"+pages.String(), keys, header, relayURL, p.content.rules.Mailbox().Limiter.Algorithm, another, strings.Join(p.content.rules.Names, ", "),
		at.addresses(), smtp, c.SMTPSenders(), calls)
}

// printed is a log of outcomes that also prints a line for each send and check.
type printed struct {
	ledger.Log
	to streams
}

// Enabled implements ledger.Log: the lines are printed at every log level.
func (printed) Enabled(slog.Level) bool { return true }

// Line implements ledger.Log. The lines show addresses, which are those of a trial. The log does not.
func (p printed) Line(o *ledger.Outcome, line []byte) {
	route := cmp.Or(o.Route, o.Door)
	if !o.Mailbox.IsZero() && (o.Door != ledger.HTTP || route == "send-code" || route == "verify-code") {
		fmt.Fprintf(p.to.out, "  %s  %-12s %-28s %s\n", time.Now().Format("15:04:05"), route, o.Mailbox.String(), came(o))
	}
	if p.Log.Enabled(o.Level) {
		p.Log.Line(o, line)
	}
}

// came returns the status of an outcome, its problem, and the wait for the next one.
func came(o *ledger.Outcome) string {
	text := "-"
	if o.Status != 0 { // none where the client ended an email itself
		text = strconv.Itoa(o.Status)
	}
	switch {
	case o.Problem != "":
		text += " " + o.Problem
	case o.Replayed:
		text += " sent before"
	case o.What != nil:
		text += " " + o.What.Word
	}
	if r := &o.Report; r.Wait > 0 {
		text += fmt.Sprintf("; next in %s (%s of %s)", seconds(r.Wait), r.Limit, r.Rule)
	}
	return text
}
