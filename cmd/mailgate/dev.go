package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/cmd/mailgate/demo"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// devFlags are the settings that make sense for a trial; dev decides the others.
func devFlags() []string {
	return []string{"listen", "tiers", "rules", "guesses", "fold", "from", "templates", "locale", "code_life", "log_level", "log_format"}
}

func devCommand() command {
	return command{
		name:    "dev",
		summary: "try it: everything in one process, nothing to set up",
		teaches: `
Serves the real API on this machine only, with temporary keys, a sign-up page that uses
it, and an inbox that shows the emails. They are sent by real SMTP to a relay in the same
process, which delivers nothing. Records are in memory and lost when the command ends.

Its log has warnings and errors only. With --log-level info it has a line for each
request, as that of serve does.

The port is 8080, or the next free one. No settings file is read, and of the environment
only MAILGATE_RULES. Flags:
  --` + strings.ReplaceAll(strings.Join(devFlags(), " --"), "_", "-") + `

Short limits:  mailgate dev --tiers quick=1/10s,short=3/1m
Your own rules:                mailgate dev --rules rules.yaml --log-level info

Rules and templates are read when it starts. It ends with its terminal, as SIGHUP ends it.`,
		run: dev,
	}
}

func dev(ctx context.Context, c call) error {
	relay, err := sandbox.Start(sandbox.Options{})
	if err != nil {
		return fmt.Errorf("starting the throw-away relay: %w", err)
	}
	defer relay.Close()
	s, err := c.devSettings(relay.URL())
	if err != nil {
		return err
	}
	listener, err := devListen(s)
	if err != nil {
		return err
	}
	address := "http://" + listener.Addr().String()
	ended, end := context.WithCancel(ctx)
	defer end()
	pages := demo.New(demo.Options{
		Client: &demo.Client{URL: address, APIKey: s.APIKeys.First(), AdminKey: s.AdminKeys.First(),
			HTTP: &http.Client{Timeout: requestPatience}},
		Relay: relay, Pages: web.FS(), Ended: ended,
	})
	p, err := build(ctx, s, c.stderr, pages)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	c.welcome(p, listener.Addr(), relay)
	return p.serve(ctx, listeners{main: listener}, nil)
}

// devSettings are those of a trial: the command line's, and for the rest what needs
// nothing outside this process.
func (c call) devSettings(relayURL string) (*settings.Settings, error) {
	instead := map[string]string{
		"data_dir":   ":memory:",
		"smtp_url":   relayURL,
		"from":       "mailgate dev <no-reply@dev.example>",
		"api_keys":   "signup:" + rand.Text(),
		"admin_keys": "operator:" + rand.Text(),
		"log_level":  "warn",
		"log_format": "text",
	}
	for _, pair := range c.environ {
		if path, ok := strings.CutPrefix(pair, "MAILGATE_RULES="); ok {
			instead["rules"] = path
		}
	}
	s, rest, err := settings.ReadFlags(c.args, instead)
	if err != nil {
		return nil, misuse(err)
	}
	for _, setting := range settings.Catalogue() {
		if origin := s.Origin(setting.Name); origin.Given() && !slices.Contains(devFlags(), setting.Name) {
			return nil, &settings.Error{Place: origin.Place, Problem: "dev decides this by itself; see mailgate dev --help"}
		}
	}
	if !s.Loopback() {
		return nil, s.Complain("listen", "dev serves this machine only: use a loopback address")
	}
	return s, c.expect(rest)
}

// devPorts is how many ports to try, from the default on.
const devPorts = 20

// devListen takes the address it was told, or else the first free port.
func devListen(s *settings.Settings) (net.Listener, error) {
	if s.Origin("listen").Given() {
		listener, err := listen(s.Listen)
		if err != nil {
			return nil, cannotListen(s, "listen", s.Listen, err)
		}
		return listener, nil
	}
	host, port, err := net.SplitHostPort(s.Listen)
	first, bad := strconv.Atoi(port)
	if err := errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("the default address: %w", err)
	}
	for n := range devPorts {
		listener, err := listen(net.JoinHostPort(host, strconv.Itoa(first+n)))
		if err == nil {
			return listener, nil
		}
	}
	return nil, s.Complain("listen", fmt.Sprintf("none of the ports %d to %d is free; name another", first, first+devPorts-1))
}

// welcome says where to look, and how to ask by hand.
func (c call) welcome(p *program, at net.Addr, relay *sandbox.Server) {
	s := p.settings
	another := ""
	if !s.Origin("listen").Given() && at.String() != s.Listen {
		another = fmt.Sprintf("\n  %s is in use, so this is the next port that is free.\n", s.Listen)
	}
	fmt.Fprintf(c.stdout, `
  mailgate dev
%[6]s
  Sign up     %[1]s/
  Inbox       %[1]s/inbox
  Console     %[1]s/console
  API         %[1]s/docs

  API key     %[2]s
  Admin key   %[3]s
  Relay       %[4]s (keeps what it gets, delivers nothing)
  Limits      %[5]s
  Rules       %[7]s

  By hand:
  curl %[1]s/send-code -H 'Authorization: Bearer %[2]s' \
    -H 'Content-Type: application/json' -d '{"email":"alice@example.com"}'

  Ctrl-C stops it and discards all records.

`, "http://"+at.String(), s.APIKeys.First(), s.AdminKeys.First(), relay.URL(), p.content.rules.Mailbox().Tiers, another, strings.Join(p.content.rules.Names(), ", "))
}
