package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/throttle/rules"
)

const whichServer = `

It asks the node at MAILGATE_URL, or else at MAILGATE_LISTEN on this machine, with the first of MAILGATE_ADMIN_KEYS.`

// subject is what show and reset are about.
type subject struct {
	Name   string `arg:"" optional:"" name:"email" help:"Mailbox, or the subject of --rule or --action."`
	Rule   string `placeholder:"NAME" xor:"of" help:"A subject of this rule instead of a mailbox."`
	Action string `placeholder:"NAME" xor:"of" help:"A subject of this action instead of a mailbox."`
	JSON   bool   `help:"Print the answer as JSON."`
}

// path returns where the API has the subject. A rule that counts all sends has none.
func (s subject) path() (string, error) {
	switch {
	case s.Rule != "":
		return "/rules/" + url.PathEscape(s.Rule), nil
	case s.Name == "":
		return "", &config.Error{Problem: "expected an email address, or the subject of --rule or --action"}
	case s.Action != "":
		return "/actions/" + url.PathEscape(s.Action), nil
	}
	return "/mailboxes/" + url.PathEscape(s.Name), nil
}

type showCommand struct {
	Of subject `embed:""`
}

func (showCommand) Help() string {
	return `Prints whether a mailbox may be sent an email now, or how long it has to wait and for which limit; all limits, the time of each send, and the guesses left at its codes. "mailbox" is its name in the log, which has no addresses. Rules that count by api_key, client_ip, purpose or template are left out. Nothing is changed.

	mailgate show alice@example.com
	mailgate show --rule client-ip 198.51.100.7
	mailgate show --rule provider
	mailgate show --action login user-4711` + whichServer + ` --action sends the first of MAILGATE_API_KEYS instead.`
}

func (s showCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	path, err := s.Of.path()
	if err != nil {
		return err
	}
	r := operatorRequest(c, http.MethodPost, "/admin"+path+"/peek", operatorBody{Subject: s.Of.Name})
	switch {
	case s.Of.Action != "":
		r.path, r.key, r.keySetting = path+"/peek", c.APIKeys.First(), "MAILGATE_API_KEYS"
	case s.Of.Rule == "":
		r.method, r.path, r.body = http.MethodGet, "/admin"+path, nil
	}
	return s.Of.print(ctx, r, to, adminAnswer.table)
}

type resetCommand struct {
	Of     subject `embed:""`
	Reason string  `placeholder:"TEXT" help:"Reason for the audit log, up to 500 characters."`
}

func (resetCommand) Help() string {
	return `Clears the recorded sends of a mailbox on a running node, so that no rule that counts by mailbox refuses the next one, and prints how many. The audit log has the reset and its reason.

	mailgate reset alice@example.com --reason "ticket 4711"
	mailgate reset --rule client-ip 198.51.100.7
	mailgate reset --rule provider
	mailgate reset --action login user-4711

The subject of a rule by client_ip is an address, by domain a domain, by api_key, purpose or template a name, by two of them both with a blank in between, of a mailbox its address; a rule by all has none.` + whichServer
}

func (r resetCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	path, err := r.Of.path()
	if err != nil {
		return err
	}
	body := operatorBody{Reason: r.Reason}
	if r.Of.Rule != "" || r.Of.Action != "" { // a mailbox is in the path
		body.Subject = r.Of.Name
	}
	return r.Of.print(ctx, operatorRequest(c, http.MethodPost, "/admin"+path+"/reset", body), to, func(a adminAnswer) string {
		text := fmt.Sprintf("records cleared for %s: %d\n", a.name(), a.Cleared)
		for _, c := range a.Cases {
			text += fmt.Sprintf("still in force: %s\n", c)
		}
		return text
	})
}

type operatorBody struct {
	Subject string `json:"subject,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func operatorRequest(c *config.Config, method, path string, body any) request {
	return request{url: serverURL(c, ""), method: method, path: path, key: c.AdminKeys.First(), keySetting: "MAILGATE_ADMIN_KEYS", body: body}
}

// print asks a server, and prints the answer as JSON or as text.
func (s subject) print(ctx context.Context, r request, to streams, text func(adminAnswer) string) error {
	var parsed adminAnswer
	body, err := ask(ctx, r, &parsed)
	if err != nil {
		return err
	}
	printed := []byte(text(parsed))
	if s.JSON {
		var indented bytes.Buffer
		_ = json.Indent(&indented, body, "", "  ") // it was read as JSON
		printed = append(indented.Bytes(), '\n')
	}
	_, err = to.out.Write(printed)
	return err
}

// adminAnswer has what the answers to operators have in common.
type adminAnswer struct {
	Mailbox, Subject, Rule, Limit string
	Denied                        string
	WaitMS                        int64 `json:"wait_ms"`
	Degraded                      bool
	Cleared                       int
	Cases                         []rules.Match
	Limits, Guesses               []limit
	Suppressions                  []listed
	Sends                         []struct {
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

// name returns what the server's log calls it. A rule that counts all sends has only its own
// name.
func (a adminAnswer) name() string {
	switch {
	case a.Mailbox != "":
		return "mailbox " + a.Mailbox
	case a.Subject != "":
		return "subject " + a.Subject
	}
	return "rule " + a.Rule
}

// table formats the answer for people.
func (a adminAnswer) table() string {
	var text strings.Builder
	next := "now"
	if a.Denied != "" || len(a.Suppressions) > 0 {
		next = "-"
	} else if a.WaitMS > 0 {
		next = "in " + seconds(a.WaitMS) + ": limit " + a.Limit + " of rule " + a.Rule
	}
	head := columns(&text)
	fmt.Fprintf(head, "in the log\t%s\nnext\t%s\n", a.name(), next)
	for _, c := range a.Cases {
		fmt.Fprintf(head, "case\t%s\n", c)
	}
	for _, s := range a.Suppressions {
		fmt.Fprintf(head, "suppressed\t%s until %s, since %s, source %s\n", s.Reason, cmp.Or(s.Until, "it is removed"), cmp.Or(s.Since, "-"), cmp.Or(s.Source, "-"))
	}
	if a.Degraded {
		fmt.Fprint(head, "degraded\tRedis is away; these are the records of one node\n")
	}
	if a.Limits != nil && len(a.Limits) == 0 {
		fmt.Fprint(head, "limits\tnone; the rule mailbox exempts this mailbox\n")
	}
	head.Flush() // into memory
	writeLimits(&text, "LIMIT", a.Limits)
	writeLimits(&text, "GUESSES", a.Guesses)
	if len(a.Sends) > 0 {
		text.WriteString("\nSENDS\n")
	}
	for _, send := range a.Sends {
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
		fmt.Fprintf(table, "%s\t%d of %d\t%s\t%s\n", l.Name, l.Limit-l.Remaining, l.Limit, config.Short(time.Duration(l.WindowMS)*time.Millisecond), wait)
	}
	table.Flush() // into memory
}

// seconds returns a wait for people, rounded up.
func seconds(ms int64) string { return config.Short(time.Duration((ms+999)/1000) * time.Second) }
