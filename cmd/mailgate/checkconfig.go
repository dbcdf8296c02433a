package main

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/boundedfile"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/rules/rulefile"
)

type checkConfigCommand struct {
	Email string `arg:"" optional:"" help:"Mailbox, to print the cases of the rules file that decide about it."`
}

func (checkConfigCommand) Help() string {
	return `Reads the settings, the rules file, the templates and the certificate as serve would, and prints each setting, its value and its source, and every rule in force. Secrets are masked. With an address it also prints which entries of deny, exempt and overrides decide about an email to it. It starts nothing and connects to nothing. The first mistake is one line on stderr, and the exit status is 2.`
}

func (k checkConfigCommand) Run(c *config.Config, to streams) error {
	if err := c.ForServing(); err != nil {
		return err
	}
	content, err := readContent(c)
	if err != nil {
		return err
	}
	hidden, err := serviceFiles(c)
	if err != nil {
		return err
	}
	var text strings.Builder
	table := columns(&text)
	for _, s := range c.Settings() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, cmp.Or(s.Value, "(not set)"), s.From)
	}
	table.Flush() // into memory
	writeHooks(&text, c)
	if c.EventsURL != "" {
		fmt.Fprintf(&text, "\nEvents are posted to %s, signed with each secret (%d), and wait in %s\n", c.EventsURL, len(c.EventsSecret), eventsDir(c))
	}
	writeRules(&text, content.rules)
	if k.Email != "" {
		if err := writeCases(&text, content, k.Email); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(content.rules.Rules, func(r rules.Rule) bool { return r.Challenge }) {
		accepted := "proof of work"
		if c.TurnstileSecret != "" {
			accepted += ", Turnstile on " + c.TurnstileHosts.String()
		}
		fmt.Fprintf(&text, "Challenges accepted: %s\n\n", accepted)
	}
	for _, note := range slices.Concat(notes(c), ruleNotes(c, content.rules), hidden, privateFiles(c, content.rules)) {
		fmt.Fprintf(&text, "note: %s\n", note)
	}
	_, err = io.WriteString(to.out, text.String())
	return err
}

// writeHooks prints the hooks that are on, and what to enter in their systems.
func writeHooks(to *strings.Builder, c *config.Config) {
	names := hooks.Names(c.Hooks())
	if len(names) == 0 {
		return
	}
	to.WriteString("\nHooks:\n")
	site := strings.TrimSuffix(cmp.Or(c.PublicURL, listenURL(c.Listen)), "/")
	for _, name := range names {
		fmt.Fprintf(to, "%-8s  %s/hooks/%s\n", name, site, name)
	}
}

// writeRules prints the rules, denials and actions. What names sends is counted only: it holds addresses.
func writeRules(to *strings.Builder, file rulefile.File) {
	fmt.Fprintf(to, "\nRules in force (digest %s):\n", file.Digest())
	table := columns(to)
	for _, r := range file.Rules {
		fmt.Fprintf(table, "%s\tby %s\t%s%s\n", r.Name, r.By, describe(r.Limiter.Algorithm), besides(r))
	}
	table.Flush() // into memory
	for _, r := range file.Rules {
		for _, c := range r.Cases {
			if c.Limit != nil {
				fmt.Fprintf(table, "%s\toverride\t%s%s%s\t%s\n", r.Name, describe(c.Limit), some("for", c.Some), inShadow(c.Shadow), c.Comment)
			}
		}
	}
	table.Flush() // into memory
	if len(file.Denials) > 0 {
		to.WriteString("\nDenied:\n")
	}
	for _, d := range file.Denials {
		fmt.Fprintf(table, "%s\t%s%s\n", d.Name, strings.TrimPrefix(some("denies", d.Some), "; "), inShadow(d.Shadow))
	}
	table.Flush() // into memory
	if len(file.Actions) > 0 {
		to.WriteString("\nActions:\n")
	}
	for _, a := range file.Actions {
		fmt.Fprintf(table, "%s\t%s\n", a.Name, describe(a.Algorithm))
	}
	table.Flush() // into memory
	to.WriteString("\n")
}

// writeCases prints what decides about a mailbox beside the limits of the rules.
func writeCases(to *strings.Builder, in content, email string) error {
	mailbox, err := address.Parse(email, in.identity)
	if err != nil {
		return &config.Error{Problem: "the mailbox: " + err.Error()}
	}
	set, done, err := triedSet(in.rules, func() int64 { return 0 })
	if err != nil {
		return err
	}
	defer done()
	to.WriteString("Cases for the mailbox:\n")
	all := set.Matches(rules.Send{Mailbox: mailbox.Key()})
	for _, m := range all {
		fmt.Fprintln(to, m)
	}
	if len(all) == 0 {
		to.WriteString("none, so the limits of the rules decide\n")
	}
	to.WriteString("\n")
	return nil
}

// describe names an algorithm as the rules file does.
func describe(a throttle.Algorithm) string {
	if policy, ok := a.(throttle.Policy); ok {
		return "sliding-log " + policy.String()
	}
	return a.String()
}

// besides returns the settings of a rule other than its limit.
func besides(r rules.Rule) (text string) {
	if r.Resends != nil {
		first, resends := r.Limiter.Algorithm.Peek(nil, 0), r.Resends.Peek(nil, 0)
		text += fmt.Sprintf("; the last %d for first sends", first.Remaining()-resends.Remaining())
	}
	if r.Challenge {
		text += "; then challenge"
	}
	if r.Budget != nil {
		text += "; counts a send until its code is right, and none of the SMTP door or a hook"
		if r.Budget.Percent > 0 {
			text += fmt.Sprintf("; or %d %% of what was verified, if more", r.Budget.Percent)
		}
	}
	for _, c := range r.Cases {
		if c.Limit == nil {
			text += some("exempt", c.Some)
		}
	}
	return text + some("only", r.Only) + inShadow(r.Shadow)
}

func inShadow(shadow bool) string {
	if shadow {
		return "; shadow, refuses nothing"
	}
	return ""
}

// some counts what some of the sends are named by, and shows none of it.
func some(word string, s rules.Some) (text string) {
	for _, by := range rules.Bys() {
		if n := len(s[by]); n > 0 {
			text += fmt.Sprintf("; %s %s: %d", word, by.List(), n)
		}
	}
	return text
}

// notes returns what is valid in the settings and probably not meant.
func notes(c *config.Config) (all []string) {
	if c.RedisURL != "" && !c.Standby() && !c.Given("on-store-outage") && c.RedisConfirm == 0 {
		all = append(all, "MAILGATE_DATA_DIR is not set, so while Redis is away sends are refused (MAILGATE_ON_STORE_OUTAGE=refuse)")
	}
	return all
}

// serviceFiles checks the certificate of the SMTP door, and notes the files that only the running service has.
func serviceFiles(c *config.Config) (all []string, err error) {
	note := func(setting string) {
		all = append(all, c.Where(setting)+" is not checked, as systemd passes its file to the running service alone")
	}
	if slices.ContainsFunc(c.SMTPURL, func(url relay.URL) bool { return url.Hidden() != nil }) {
		note("smtp-url")
	}
	if boundedfile.Hidden(c.SubmissionTLSCert) || boundedfile.Hidden(c.SubmissionTLSKey) {
		note("submission-tls-cert")
		return all, nil
	}
	return all, new(certificate).read(c)
}

// privateFiles notes what root can read of the settings, and the user of a service perhaps cannot.
func privateFiles(c *config.Config, file rulefile.File) (all []string) {
	if os.Geteuid() != 0 {
		return nil
	}
	paths := append([]string{c.File, c.Rules}, file.Lists...)
	_ = filepath.WalkDir(c.Templates, func(path string, _ fs.DirEntry, _ error) error { // it returns no error
		paths = append(paths, path)
		return nil
	})
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && (info.Mode()&0o004 == 0 || info.IsDir() && info.Mode()&0o001 == 0) {
			all = append(all, "not every user can read "+path+": under systemd mailgate has a user of its own")
		}
	}
	return all
}

// ruleNotes returns the notes about the rules.
func ruleNotes(c *config.Config, file rulefile.File) (all []string) {
	known := slices.Concat(c.APIKeys.Names(), hooks.Names(config.HooksOf[hooks.Sender](c)))
	if c.APIKeys.IsZero() {
		known = append(known, rules.Caller(""))
	}
	callers := func(what string, names ...rules.Name) {
		var missing []string
		for _, name := range names {
			if !slices.Contains(known, name.Text) {
				missing = append(missing, name.Text)
			}
		}
		if len(missing) > 0 {
			all = append(all, fmt.Sprintf("the %s names API keys that are not set: %s", what, strings.Join(missing, ", ")))
		}
	}
	for _, r := range file.Rules {
		names := slices.Clone(r.Only[rules.ByAPIKey])
		for _, c := range r.Cases {
			names = append(names, c.Some[rules.ByAPIKey]...)
		}
		callers("rule "+r.Name, names...)
	}
	for _, d := range file.Denials {
		callers("denial "+d.Name, d.Some[rules.ByAPIKey]...)
	}
	all = append(all, file.Notes...)
	if file.Mailbox().Shadow {
		all = append(all, "THE RULE MAILBOX IS IN SHADOW: any mailbox can be sent any number of emails")
	}
	return all
}

// columns aligns what is written with tabs in between.
func columns(to io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(to, 0, 0, 2, ' ', 0) }
