package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// The commands here ask a running server, as any other client would.

func showCommand() command {
	return command{
		name: "show", arguments: "<email>",
		summary: "how a mailbox stands with a running server: its limits and its sends",
		teaches: `
Prints, as JSON, what a running server knows of a mailbox: whether it may be sent a
mail now, which limit it waits for and how long, every tier, the time of each send, and
how many guesses at its codes are left. Of a mailbox that the rule mailbox leaves alone,
a "note" says so, and there are no tiers. Rules that count by api_key, client_ip or
template are not asked, as a look knows no caller, no visitor and no template.
The line "mailbox" is what the server's log calls it: no address is ever there.
Nothing is changed.

With --rule it is how a subject stands with one rule that counts by something else, as
"mailgate reset --help" has it:

  mailgate show --rule client-ip 198.51.100.7

The server is the one at MAILGATE_URL, or else at MAILGATE_LISTEN on this machine. The
first of MAILGATE_ADMIN_KEYS is the key that is shown to it.`,
		run: show,
	}
}

func resetCommand() command {
	return command{
		name: "reset", arguments: "<email>",
		summary: "let a mailbox, or the subject of a --rule or an --action, start afresh, with a running server",
		teaches: `
Makes a running server forget the sends of a mailbox, so that no rule that counts by
mailbox refuses the next one, and prints how many there were. The server writes it to its
audit log, with the reason, of up to 500 characters, if you give one:

  mailgate reset alice@example.com --reason "ticket 4711"

With --rule it is what one rule has counted by something else: for a visitor's address, a
domain, the name of an API key or of a template, or by a rule that counts all sends,
which takes no subject:

  mailgate reset --rule client-ip 198.51.100.7
  mailgate reset --rule provider

With --action it is a subject of that action, as the rules file names it, in place of a
mailbox:

  mailgate reset --action login user-4711

The answer has what the server's log calls the mailbox, or the subject.

The server is the one at MAILGATE_URL, or else at MAILGATE_LISTEN on this machine. The
first of MAILGATE_ADMIN_KEYS is the key that is shown to it.`,
		run: reset,
	}
}

func healthcheckCommand() command {
	return command{
		name:    "healthcheck",
		summary: "ask a running server whether it can serve; the exit status is the answer",
		teaches: `
Asks /readyz of the server at MAILGATE_URL, or else at MAILGATE_OPS_LISTEN or, where that
is not set, MAILGATE_LISTEN on this machine.
The exit status is 0 if it can serve and 1 if not. Made for the HEALTHCHECK of a
container.`,
		run: func(ctx context.Context, c call) error {
			s, _, err := c.settings()
			if err != nil {
				return err
			}
			_, err = ask(ctx, s, question{method: http.MethodGet, path: "/readyz", ops: true}, storePatience(s)+time.Second)
			return err
		},
	}
}

// show takes what only it knows out of the command line, and asks.
func show(ctx context.Context, c call) (err error) {
	var rule string
	if rule, c.args, err = takeFlag("--rule", c.args); err != nil {
		return err
	}
	if rule == "" {
		return c.askOperator(ctx, "<email>", func(email []string) question {
			return question{method: http.MethodGet, path: mailboxPath(email[0])}
		})
	}
	return c.askOperator(ctx, ruleSubject, func(subject []string) question {
		return question{method: http.MethodPost, path: rulePath(rule) + "/peek", body: fields(ofRule(subject)...)}
	})
}

// reset takes what only it knows out of the command line, and asks.
func reset(ctx context.Context, c call) (err error) {
	var reason, action, rule string
	for _, flag := range []struct {
		name string
		into *string
	}{{"--reason", &reason}, {"--action", &action}, {"--rule", &rule}} {
		if *flag.into, c.args, err = takeFlag(flag.name, c.args); err != nil {
			return err
		}
	}
	switch {
	case action != "" && rule != "":
		return misusage("--action and --rule: give one of them")
	case action != "":
		return c.askOperator(ctx, "<subject>", func(subject []string) question {
			return resetting("/admin/actions/"+url.PathEscape(action), fields("subject", subject[0], "reason", reason))
		})
	case rule != "":
		return c.askOperator(ctx, ruleSubject, func(subject []string) question {
			return resetting(rulePath(rule), fields(append(ofRule(subject), "reason", reason)...))
		})
	}
	return c.askOperator(ctx, "<email>", func(email []string) question {
		return resetting(mailboxPath(email[0]), fields("reason", reason))
	})
}

func resetting(path string, body []byte) question {
	return question{method: http.MethodPost, path: path + "/reset", body: body}
}

// ruleSubject may be left out, as a rule that counts all sends has none.
const ruleSubject = "[subject]"

// ofRule has the subject, if there is one, by its name.
func ofRule(subject []string) (pairs []string) {
	for _, given := range subject {
		pairs = append(pairs, "subject", given)
	}
	return pairs
}

func rulePath(rule string) string { return "/admin/rules/" + url.PathEscape(rule) }

// fields are names and values as the body of a request.
func fields(pairs ...string) []byte {
	all := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		all[pair[0]] = pair[1]
	}
	body, _ := json.Marshal(all) // text alone can always be written
	return body
}

func mailboxPath(email string) string { return "/admin/mailboxes/" + url.PathEscape(email) }

// takeFlag finds a flag among the arguments before a --, and returns the others.
func takeFlag(flag string, args []string) (value string, rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, given, hasValue := strings.Cut(args[i], "=")
		if name == "--" {
			return value, append(rest, args[i:]...), nil
		}
		if name != flag {
			rest = append(rest, args[i])
			continue
		}
		if !hasValue && i+1 < len(args) {
			i++
			given = args[i]
		}
		if given == "" || value != "" {
			return "", nil, misusage(flag + ": it needs a value, once")
		}
		value = given
	}
	return value, rest, nil
}

// askOperator asks about the argument that the command takes, and prints the answer.
func (c call) askOperator(ctx context.Context, argument string, about func(given []string) question) error {
	s, rest, err := c.settings(argument)
	if err != nil {
		return err
	}
	q := about(rest)
	q.key = s.AdminKeys.First()
	answer, err := ask(ctx, s, q, requestPatience)
	var refused *refusal
	if errors.As(err, &refused) && refused.status == http.StatusUnauthorized {
		return fmt.Errorf("%w (the key to show is the first of MAILGATE_ADMIN_KEYS)", err)
	}
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, withNote(answer), "", "  "); err != nil {
		return errors.New("the server's answer is not JSON; is it mailgate?")
	}
	_, err = fmt.Fprintln(c.stdout, pretty.String())
	return err
}

// withNote explains the answer about a mailbox that the rule mailbox leaves alone. Of any
// other it has limits.
func withNote(answer []byte) []byte {
	var about struct{ Limits []json.RawMessage }
	object, whole := bytes.CutSuffix(bytes.TrimSpace(answer), []byte("}"))
	if json.Unmarshal(answer, &about) != nil || !whole || about.Limits == nil || len(about.Limits) > 0 {
		return answer
	}
	return append(object, `,"note":"the rule mailbox exempts this mailbox, so there are no limits to list"}`...)
}

// maxAnswer is far more than any answer there is.
const maxAnswer = 1 << 20

// A question is one request to a running server; the key and the body may be empty.
type question struct {
	key, method, path string
	body              []byte
	ops               bool // for the listener of operations, if there is one
}

// A refusal is an answer other than 200.
type refusal struct {
	base   string
	status int
	reason string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s answers %d: %s", r.base, r.status, r.reason)
}

// ask sends a question and returns the body of a 200.
func ask(ctx context.Context, s *settings.Settings, q question, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	base := serverURL(s, q.ops)
	request, err := http.NewRequestWithContext(ctx, q.method, base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, s.Complain("url", "no request can be made of it")
	}
	if q.key != "" {
		request.Header.Set("Authorization", "Bearer "+q.key)
	}
	if len(q.body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	// No proxy, and no redirect: the key is for this server alone.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no server answers at %s: %w", base, withoutURL(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer of %s broke off: %w", base, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, &refusal{base, response.StatusCode, explain(response.StatusCode, body)}
	}
	return body, nil
}

// serverURL is where a running server is: what the setting says, or the address that
// serve listens on, as seen from this machine.
func serverURL(s *settings.Settings, ops bool) string {
	if s.URL != "" {
		return strings.TrimRight(s.URL, "/")
	}
	address := s.Listen
	if ops && s.OpsListen != "" {
		address = s.OpsListen
	}
	host, port, err := net.SplitHostPort(address)
	if addr, bad := netip.ParseAddr(host); err != nil || host == "" || bad == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// withoutURL drops the path, and the mailbox in it, from an error of the HTTP client.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// explain finds the sentences in a problem document: those about single fields, or else
// the one about all.
func explain(status int, body []byte) string {
	var problem struct {
		Title, Detail string
		Errors        []struct{ Detail string }
	}
	if json.Unmarshal(body, &problem) != nil || problem.Title == "" {
		return http.StatusText(status)
	}
	var details []string
	for _, field := range problem.Errors {
		details = append(details, field.Detail)
	}
	if details == nil {
		details = []string{problem.Detail}
	}
	return strings.TrimSuffix(problem.Title+": "+strings.Join(details, " "), ": ")
}
