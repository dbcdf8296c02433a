package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/rules/rulefile"
)

func checkConfigCommand() command {
	return command{
		name:    "check-config",
		summary: "check the settings, and print them with secrets masked",
		teaches: `
Reads the settings and the rules file as serve would, tries out the templates, and
prints each setting, its value and where it comes from, and every rule in force.
Secrets are masked. Nothing is started and nobody is connected to. What cannot be right
is one line on stderr, and the exit status is 2.`,
		run: checkConfig,
	}
}

func checkConfig(_ context.Context, c call) error {
	s, _, err := c.settings()
	if err != nil {
		return err
	}
	if err := s.ForServing(); err != nil {
		return err
	}
	content, err := readContent(s)
	if err != nil {
		return err
	}
	var b strings.Builder
	writeInForce(&b, s)
	writeRules(&b, content.rules)
	for _, place := range s.Unused() {
		fmt.Fprintf(&b, "note: %s has no effect, because the history is in Redis\n", place)
	}
	if s.RedisURL != "" && !s.GoesOn() && !s.Origin("on_store_outage").Given() && s.RedisConfirm == 0 {
		b.WriteString("note: no directory is set as data_dir, so while Redis is away sends are refused (on_store_outage: refuse)\n")
	}
	if twice := keysTwice(s); twice != nil {
		fmt.Fprintf(&b, "note: keys with two secrets: %s; take the old ones out when nobody uses them any more\n", strings.Join(twice, ", "))
	}
	for _, u := range unknownKeys(content.rules, s) {
		fmt.Fprintf(&b, "note: the rule %s exempts API keys that are not set: %s\n", u.rule, strings.Join(u.keys, ", "))
	}
	if content.rules.Mailbox().Shadow {
		b.WriteString("note: the rule mailbox is in shadow, so any mailbox can be sent any number of mails\n")
	}
	_, err = fmt.Fprint(c.stdout, b.String())
	return err
}

// writeInForce is a table of the settings.
func writeInForce(b *strings.Builder, s *settings.Settings) {
	table := columns(b)
	for _, setting := range settings.Catalogue() {
		origin := s.Origin(setting.Name)
		from := origin.Level.String()
		if origin.Given() {
			from += " " + origin.Place
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", setting.Name, cmp.Or(s.Shown(setting.Name), "(not set)"), from)
	}
	table.Flush() // into memory
}

// writeRules are tables of the rules and actions. Whom a rule leaves alone is a matter
// of numbers: addresses are not for terminals.
func writeRules(b *strings.Builder, file rulefile.File) {
	fmt.Fprintf(b, "\nRules in force (digest %s):\n", file.Digest())
	table := columns(b)
	for _, r := range file.Rules {
		fmt.Fprintf(table, "%s\tby %s\t%s%s\n", r.Name, r.By, r.Count, besides(r))
	}
	table.Flush() // into memory
	if len(file.Actions) > 0 {
		b.WriteString("\nActions:\n")
	}
	for _, a := range file.Actions {
		fmt.Fprintf(table, "%s\t%s\n", a.Name, a.Count)
	}
	table.Flush() // into memory
	b.WriteString("\n")
}

// besides is what there is to a rule but its limit.
func besides(r rulefile.Rule) (text string) {
	if r.KeepForFirstSends > 0 {
		text += fmt.Sprintf("; the last %d for first sends", r.KeepForFirstSends)
	}
	for _, exempt := range []struct {
		n    int
		what string
	}{
		{len(r.Exempt.Mailboxes), "mailboxes"}, {len(r.Exempt.Networks), "networks"}, {len(r.Exempt.Callers), "api keys"},
	} {
		if exempt.n > 0 {
			text += fmt.Sprintf("; exempt %s: %d", exempt.what, exempt.n)
		}
	}
	if r.Shadow {
		text += "; in shadow, refuses nothing"
	}
	return text
}

// columns lays out what is written with tabs in between.
func columns(to io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(to, 0, 0, 2, ' ', 0) }
