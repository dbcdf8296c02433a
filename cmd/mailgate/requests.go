package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

type requestsCommand struct {
	Email   string        `arg:"" optional:"" help:"Mailbox."`
	Mailbox string        `placeholder:"HASH" help:"A mailbox by its hash in the log."`
	Outcome string        `placeholder:"NAME" help:"sent, quota-exceeded, suppressed, rejected, unavailable, incorrect, \"mailbox reset\" and so on."`
	Rule    string        `placeholder:"NAME" help:"The rule that has to be waited for."`
	Key     string        `placeholder:"NAME" help:"The caller: the name of its key, or its hook."`
	Node    string        `placeholder:"NAME" help:"A node, beside Redis: host:port."`
	Door    string        `placeholder:"NAME" help:"http, smtp, supabase or logto."`
	Visitor string        `placeholder:"ADDRESS" help:"The visitor that a caller named; of IPv6 the network, as 2001:db8::/64."`
	Audited bool          `help:"Only the audit log: what operators and bounces changed since the node started."`
	Since   time.Duration `placeholder:"1h" help:"Only those of so long ago at most."`
	Limit   int           `default:"100" help:"How many at most, up to 500."`
	Follow  bool          `short:"f" help:"Print those that come, too, until it is interrupted."`
	JSON    bool          `help:"Print each as JSON, one a line."`
}

func (requestsCommand) Help() string {
	return `Prints the last sends, refusals, checks of codes, and actions of operators, the newest at the end: what each came to, which limit has to be waited for, and what the relay said. Beside Redis they are those of all nodes, up to 50,000 of the last day; else those that one node keeps in memory until it stops. Mailboxes are hashes, as in the log.

	mailgate requests alice@example.com
	mailgate requests --outcome quota-exceeded --since 1h --follow` + whichServer
}

func (q requestsCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	query := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	for name, value := range map[string]string{"email": q.Email, "mailbox": q.Mailbox, "outcome": q.Outcome, "rule": q.Rule, "key": q.Key, "node": q.Node, "door": q.Door, "visitor": q.Visitor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Audited {
		query.Set("audited", "true")
	}
	if q.Since > 0 {
		query.Set("since", time.Now().Add(-q.Since).UTC().Format(time.RFC3339))
	}
	begun := false
	print := func(text []byte) error {
		line := string(text)
		if !q.JSON {
			var one keptRequest
			if err := json.Unmarshal(text, &one); err != nil {
				return fmt.Errorf("the answer is not mailgate's: %w", err)
			}
			if !begun {
				fmt.Fprintf(to.out, requestColumns, "TIME (UTC)", nodeColumn(one.Node, "NODE"), "OUTCOME", "DOOR", "MAILBOX", "CALLER", "ID", "WHY\n")
				begun = true
			}
			line = one.line()
		}
		_, err := fmt.Fprintln(to.out, line)
		return err
	}
	r := operatorRequest(c, http.MethodGet, "/admin/requests?"+query.Encode(), nil)
	if q.Follow {
		return follow(ctx, r, to.err, print)
	}
	var answer struct {
		AllNodes bool `json:"all_nodes"`
		Requests []json.RawMessage
	}
	if _, err := ask(ctx, r, &answer); err != nil {
		return err
	}
	if !answer.AllNodes {
		fmt.Fprintln(to.err, ofOneNode)
	}
	if len(answer.Requests) == 0 {
		fmt.Fprintln(to.err, "mailgate: no such request among the last 50,000")
	}
	for _, text := range slices.Backward(answer.Requests) {
		if err := print(text); err != nil {
			return err
		}
	}
	return nil
}

const ofOneNode = "mailgate: these are of one node alone: it has no Redis, or Redis is away"

// follow prints the events of a server as they come.
func follow(ctx context.Context, r request, notes io.Writer, print func([]byte) error) error {
	r.accept = "text/event-stream"
	response, err := open(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for event := ""; lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		switch {
		case !ok:
		case event == "all_nodes":
			if string(text) != "true" {
				fmt.Fprintln(notes, ofOneNode)
			}
			event = ""
		default:
			if err := print(text); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%s ended the connection: %w", r.url, cmp.Or(lines.Err(), errors.New("it shuts down")))
}

// keptRequest is what the command prints of one.
type keptRequest struct {
	At                                                                                      time.Time
	Node                                                                                    string
	Count                                                                                   int
	Outcome, Door, Route, Mailbox, Action, Key, Rule, Limit, Said, Reply, Cause, Reason, ID string
	RequestID                                                                               string `json:"request_id"`
	Wait                                                                                    int64  `json:"wait_ms"`
}

// The columns of a request. Times are in UTC.
const requestColumns = "%-24s  %s%-14s %-8s %-10s %-10s [%s]  %s"

// nodeColumn is empty without Redis. Names of nodes are of one length mostly.
func nodeColumn(node, text string) string {
	if node == "" {
		return ""
	}
	return fmt.Sprintf("%-*s ", len(node), text)
}

// line formats it for people.
func (k keptRequest) line() string {
	why := []string{}
	if k.Wait > 0 && k.Outcome != "sent" { // else it is the wait of the next one
		why = append(why, k.Rule+"."+k.Limit+" for "+seconds(k.Wait))
	}
	for _, text := range []string{k.Reply, k.Cause, k.Reason} {
		if text != "" {
			why = append(why, text)
		}
	}
	if k.Count > 0 {
		why = append(why, fmt.Sprintf("%d like this in a second", k.Count))
	}
	id := cmp.Or(k.ID, k.RequestID)
	return uncontrolled(fmt.Sprintf(requestColumns, k.At.UTC().Format("2006-01-02T15:04:05.000Z"), nodeColumn(k.Node, k.Node), k.Outcome, k.Door, cmp.Or(k.Mailbox, k.Action), cmp.Or(k.Key, "-"), id, strings.Join(why, "; ")))
}
