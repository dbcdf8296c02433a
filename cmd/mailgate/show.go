package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

const whichServer = `

The server is the one at MAILGATE_URL, or else at MAILGATE_LISTEN on this machine. The first of MAILGATE_ADMIN_KEYS opens it.`

// target is what show and reset are about.
type target struct {
	Subject string `arg:"" optional:"" name:"email" help:"Mailbox, or the subject of --rule or --action."`
	Rule    string `placeholder:"NAME" xor:"of" help:"A subject of this rule instead of a mailbox."`
	Action  string `placeholder:"NAME" xor:"of" help:"A subject of this action instead of a mailbox."`
	JSON    bool   `help:"Print the answer as JSON."`
}

// path is where the API has it. A rule that counts all sends has no subject.
func (t target) path() (string, error) {
	switch {
	case t.Rule != "":
		return "/admin/rules/" + url.PathEscape(t.Rule), nil
	case t.Subject == "":
		return "", &config.Error{Problem: "which one? give an email address, or the subject of --action"}
	case t.Action != "":
		return "/admin/actions/" + url.PathEscape(t.Action), nil
	}
	return "/admin/mailboxes/" + url.PathEscape(t.Subject), nil
}

type showCommand struct {
	Of target `embed:""`
}

func (showCommand) Help() string {
	return `Prints whether a mailbox may be sent an email now, or how long it has to wait and for which limit; all limits, the time of each send, and the guesses left at its codes. "mailbox" is its name in the log, which has no addresses. Rules that count by api_key, client_ip or template are left out. Nothing is changed.

	mailgate show alice@example.com
	mailgate show --rule client-ip 198.51.100.7
	mailgate show --action login user-4711

An action is looked up with the first of MAILGATE_API_KEYS.` + whichServer
}

func (s showCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	path, err := s.Of.path()
	if err != nil {
		return err
	}
	q := question{method: http.MethodPost, path: path + "/peek", key: c.AdminKeys.First(), keySetting: "MAILGATE_ADMIN_KEYS", body: operatorBody{Subject: s.Of.Subject}}
	switch {
	case s.Of.Action != "":
		q.path, q.key, q.keySetting = strings.TrimPrefix(q.path, "/admin"), c.APIKeys.First(), "MAILGATE_API_KEYS"
	case s.Of.Rule == "":
		q.method, q.path, q.body = http.MethodGet, path, nil
	}
	return printAnswer(ctx, c, q, s.Of.JSON, to, standing.table)
}

type resetCommand struct {
	Of     target `embed:""`
	Reason string `placeholder:"TEXT" help:"Reason for the audit log, up to 500 characters."`
}

func (resetCommand) Help() string {
	return `Makes a running server forget the sends of a mailbox, so that no rule that counts by mailbox refuses the next one, and prints how many there were. The server writes it to its audit log, with the reason.

	mailgate reset alice@example.com --reason "ticket 4711"
	mailgate reset --rule client-ip 198.51.100.7
	mailgate reset --rule provider
	mailgate reset --action login user-4711

The subject of a rule is an address, a domain, or the name of an API key or template; a rule that counts all sends has none.` + whichServer
}

func (r resetCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	path, err := r.Of.path()
	if err != nil {
		return err
	}
	body := operatorBody{r.Of.Subject, r.Reason}
	if r.Of.Rule == "" && r.Of.Action == "" {
		body.Subject = "" // it is in the path
	}
	q := question{method: http.MethodPost, path: path + "/reset", key: c.AdminKeys.First(), keySetting: "MAILGATE_ADMIN_KEYS", body: body}
	return printAnswer(ctx, c, q, r.Of.JSON, to, func(s standing) string { return fmt.Sprintf("cleared %d of %s\n", s.Cleared, s.name()) })
}

// operatorBody is the body of all operator requests.
type operatorBody struct {
	Subject string `json:"subject,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// printAnswer asks a server, and prints what it answers as JSON or as text.
func printAnswer(ctx context.Context, c *config.Config, q question, asJSON bool, to streams, text func(standing) string) error {
	answer, err := ask(ctx, c, q, requestPatience)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.status == http.StatusUnauthorized {
		return fmt.Errorf("%w (the key used is the first of %s)", err, q.keySetting)
	}
	if err != nil {
		return err
	}
	var parsed standing
	var indented bytes.Buffer
	if json.Unmarshal(answer, &parsed) != nil || json.Indent(&indented, answer, "", "  ") != nil {
		return errors.New("the answer is not JSON of mailgate; is another server at this address?")
	}
	if asJSON {
		_, err = fmt.Fprintln(to.out, indented.String())
	} else {
		_, err = fmt.Fprint(to.out, text(parsed))
	}
	return err
}

// A standing is what the answers to operators have in common.
type standing struct {
	Mailbox, Subject, Rule, Action, Limit string
	WaitMS                                int64 `json:"wait_ms"`
	Degraded                              bool
	Cleared                               int
	Limits, Guesses                       []limit
	Sends                                 []struct {
		ID string
		At time.Time
	}
}

type limit struct {
	Name      string
	Limit     int
	Remaining int
	WindowMS  int64 `json:"window_ms"`
	WaitMS    int64 `json:"wait_ms"`
}

// name is what the server's log calls it.
func (s standing) name() string {
	switch {
	case s.Mailbox != "":
		return "mailbox " + s.Mailbox
	case s.Subject != "":
		return "subject " + s.Subject
	}
	return strings.TrimSpace("rule " + cmp.Or(s.Rule, s.Action))
}

// table is for people.
func (s standing) table() string {
	var text strings.Builder
	next := "now"
	if s.WaitMS > 0 {
		next = "in " + seconds(s.WaitMS) + ": limit " + s.Limit + " of rule " + s.Rule
	}
	head := columns(&text)
	fmt.Fprintf(head, "in the log\t%s\nnext\t%s\n", s.name(), next)
	if s.Degraded {
		fmt.Fprint(head, "degraded\tRedis is away; this is what one server knows\n")
	}
	if s.Limits != nil && len(s.Limits) == 0 {
		fmt.Fprint(head, "limits\tnone; the rule mailbox exempts this mailbox\n")
	}
	head.Flush() // into memory
	writeLimits(&text, "LIMIT", s.Limits)
	writeLimits(&text, "GUESSES", s.Guesses)
	if len(s.Sends) > 0 {
		text.WriteString("\nSENDS\n")
	}
	for _, send := range s.Sends {
		fmt.Fprintf(&text, "%s  %s\n", send.At.Format(time.RFC3339), send.ID)
	}
	return text.String()
}

func writeLimits(to *strings.Builder, title string, limits []limit) {
	if len(limits) == 0 {
		return
	}
	to.WriteString("\n")
	table := columns(to)
	fmt.Fprintf(table, "%s\tUSED\tWINDOW\tWAIT\n", title)
	for _, l := range limits {
		wait := "-"
		if l.WaitMS > 0 {
			wait = seconds(l.WaitMS)
		}
		fmt.Fprintf(table, "%s\t%d of %d\t%s\t%s\n", l.Name, l.Limit-l.Remaining, l.Limit, seconds(l.WindowMS), wait)
	}
	table.Flush() // into memory
}

// seconds is a wait for people, rounded up.
func seconds(ms int64) string { return config.Short(time.Duration((ms+999)/1000) * time.Second) }
