// Package rulefile reads the file in which operators write their rules:
//
//	rules:
//	  - name: mailbox
//	    exempt: {mailboxes: ["e2e-*@acme.example"]}
//	  - name: provider
//	    by: all
//	    algorithm: fixed-window
//	    limit: day=50000/24h
//	    keep_for_first_sends: 5000
//	actions:
//	  - name: reply
//	    limit: minute=10/60s,hour=100/1h
//
// A rule decides about sends, together with all others; an action is a limit of its own for
// anything that a caller wants to count. Two rules exist without a file, mailbox and
// client-ip; a file that names one of them changes what it says of it, and nothing else.
//
// A mistake is one line that names the file, its line, the rule and what is wrong. No error
// repeats an address.
package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/internal/yamlfile"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// File is every rule in force, the built-in ones included, and the actions.
type File struct {
	// Rules have limiters without records, which say the algorithms.
	Rules   []rules.Rule
	Denials []rules.Case
	Actions []Action
	Notes   []string // what is probably not meant, for people
	Lists   []string // the files that it names

	// Names are those of all rules, denials and actions, in their order. A denial and an action have that word before.
	Names []string

	parts map[string]part // by name
}

// Action is a limit that callers ask about by its name.
type Action struct {
	Name      string
	Algorithm throttle.Algorithm
}

// Mailbox returns the rule of that name, which every File has.
func (f File) Mailbox() rules.Rule { return f.Rules[f.index(rules.MailboxRule)] }

// index returns where the rule of that name is, -1 if there is none.
func (f File) index(name string) int {
	return slices.IndexFunc(f.Rules, func(r rules.Rule) bool { return r.Name == name })
}

// ClientIPRule is the built-in rule that bounds one visitor with many mailboxes.
const ClientIPRule = "client-ip"

// Defaults are what a file is read with.
type Defaults struct {
	// Tiers limit the rule mailbox where the file does not. TiersSetBy is the setting they
	// come from, if any; then the file must not have a limit for the mailbox as well.
	Tiers      throttle.Policy
	TiersSetBy string
	// Mailbox is the key that emails to an address are counted by. Its error is a sentence
	// without the address.
	Mailbox func(address string) (key string, err error)
	// SendDeadline is how many milliseconds a send may take as a whole. A rule holds a send
	// back for half of it at the most.
	SendDeadline int64
	// Sender is the mailbox of the operator's own emails, in the spelling of keys.
	Sender string
}

// challenge is what a rule may do other than refuse.
const challenge = "challenge"

// What a file may hold.
const (
	maxRules   = 32 // every send asks them all
	maxActions = 256
)

// The file as it is written.
type (
	text struct {
		Rules     []ruleText     `yaml:"rules"`
		Deny      []denyText     `yaml:"deny"`
		Overrides []overrideText `yaml:"overrides"`
		Actions   []actionText   `yaml:"actions"`
	}
	ruleText struct {
		Name   string         `yaml:"name"`
		By     yamlfile.Value `yaml:"by"` // of a list, with a comma between its two
		Count  count          `yaml:",inline"`
		Keep   *whole         `yaml:"keep_for_first_sends"`
		Then   string         `yaml:"then"`
		Counts string         `yaml:"counts"`
		Ratio  *percent       `yaml:"ratio"`
		Shadow bool           `yaml:"shadow"`
		Off    bool           `yaml:"off"`
		Exempt someText       `yaml:"exempt"`
		Only   *someText      `yaml:"only"`
	}
	actionText struct {
		Name  string `yaml:"name"`
		Count count  `yaml:",inline"`
	}
)

// builtIn returns the rules in force without a file: the rule mailbox with its tiers, and a hundred
// sends a minute for each visitor's address.
func builtIn(d Defaults) []ruleText {
	return []ruleText{
		{Name: rules.MailboxRule, By: yamlfile.Value{Text: string(rules.ByMailbox)}, Count: count{Algorithm: slidingLog, Limit: d.Tiers.String()}},
		{Name: ClientIPRule, By: yamlfile.Value{Text: string(rules.ByClientIP)}, Count: count{Algorithm: slidingWindow, Limit: "minute=100/60s"}},
	}
}

// wrong is a mistake in a part of a rule, such as "limit"; an empty part is the whole rule.
type wrong struct {
	part string
	err  error
}

func (w wrong) Error() string { return w.err.Error() }

func wrongIn(part string, err error) error {
	if err == nil {
		return nil
	}
	return wrong{part, err}
}

func refuse(part, format string, args ...any) error { return wrong{part, fmt.Errorf(format, args...)} }

// reader reads a File.
type reader struct {
	Defaults
	File
	path    string           // of the file; empty without one
	names   map[string]bool  // of the rules and denials so far, or of the actions
	cases   map[string]bool  // of the rules so far
	written map[string]count // how each rule counts
}

// Default returns what is in force without a file.
func Default(d Defaults) (File, error) { return read(d, "", nil, text{}) }

// Read reads the file at the path.
func Read(path string, d Defaults) (File, error) {
	var t text
	file, err := yamlfile.Read(path, &t)
	if err != nil {
		return File{}, err
	}
	switch {
	case t.Rules == nil && t.Actions == nil && t.Deny == nil && t.Overrides == nil: // it may be in the middle of being written
		return File{}, file.Wrong("", "it has neither rules nor actions; write rules: [] if that is meant")
	case len(t.Rules) > maxRules:
		return File{}, file.Wrong("$.rules", fmt.Sprintf("there can be %d rules, not %d", maxRules, len(t.Rules)))
	case len(t.Deny) > maxRules:
		return File{}, file.Wrong("$.deny", fmt.Sprintf("there can be %d denials, not %d", maxRules, len(t.Deny)))
	case len(t.Actions) > maxActions:
		return File{}, file.Wrong("$.actions", fmt.Sprintf("there can be %d actions, not %d", maxActions, len(t.Actions)))
	}
	return read(d, path, file, t)
}

// read reads the built-in rules and then what the file at the path has.
func read(d Defaults, path string, file *yamlfile.File, t text) (File, error) {
	r := &reader{Defaults: d, path: path, names: map[string]bool{}, cases: map[string]bool{}, written: map[string]count{}}
	for _, rule := range builtIn(d) {
		if err := rule.read(r); err != nil {
			return File{}, fmt.Errorf("rule %s: %w", rule.Name, err)
		}
	}
	for i, rule := range t.Rules {
		if err := rule.complete(r); err != nil {
			return File{}, locate(file, "rule", rule.Name, fmt.Sprintf("$.rules[%d]", i), err)
		}
	}
	for i, denial := range t.Deny {
		if err := denial.read(r); err != nil {
			return File{}, locate(file, "denial", denial.Name, fmt.Sprintf("$.deny[%d]", i), err)
		}
	}
	for i, override := range t.Overrides {
		if err := override.read(r); err != nil {
			return File{}, locate(file, "override of", override.Rule, fmt.Sprintf("$.overrides[%d]", i), err)
		}
	}
	clear(r.names)
	for i, action := range t.Actions {
		if err := action.read(r); err != nil {
			return File{}, locate(file, "action", action.Name, fmt.Sprintf("$.actions[%d]", i), err)
		}
	}
	r.describe()
	return r.File, nil
}

// locate adds where the mistake is to its error.
func locate(file *yamlfile.File, what, name, path string, err error) error {
	if known, ok := errors.AsType[*yamlfile.Error](err); ok { // in a list of its own
		return known
	}
	if throttle.CheckName(name) == nil {
		what += " " + name
	}
	if w, ok := errors.AsType[wrong](err); ok && w.part != "" {
		return file.Wrong(path+"."+w.part, what+": "+w.part+": "+err.Error())
	}
	return file.Wrong(path, what+": "+err.Error())
}

// reserved are the names that answers use as the rule of mailgate's own limits.
var reserved = []string{"lookups", "countdowns", "guesses", "requests", rules.TokenRule}

// checkName refuses a name that cannot be, or is taken.
func (r *reader) checkName(name string) error {
	if name == "" {
		return refuse("", "name is missing")
	}
	if err := throttle.CheckName(name); err != nil {
		return wrongIn("name", err)
	}
	if slices.Contains(reserved, name) {
		return refuse("name", "this name is taken by a built-in limit")
	}
	if r.names[name] {
		return refuse("name", "the name is used twice")
	}
	r.names[name] = true
	return nil
}

// complete reads a rule of the file. Fields that are not set keep the built-in rule's values.
func (t ruleText) complete(r *reader) error {
	if err := r.checkName(t.Name); err != nil {
		return err
	}
	all := builtIn(r.Defaults)
	if i := slices.IndexFunc(all, func(b ruleText) bool { return b.Name == t.Name }); i >= 0 {
		if err := t.checkBuiltIn(r.TiersSetBy, all[i]); err != nil {
			return err
		}
		t.By = all[i].By
		t.Count.Algorithm = cmp.Or(t.Count.Algorithm, all[i].Count.Algorithm)
		t.Count.Limit = cmp.Or(t.Count.Limit, all[i].Count.Limit)
	}
	return t.read(r)
}

// checkBuiltIn refuses what a built-in rule cannot have.
func (t ruleText) checkBuiltIn(tiersSetBy string, known ruleText) error {
	mailbox := t.Name == rules.MailboxRule
	switch {
	case t.By.Line > 0 && t.By.Text != known.By.Text:
		return refuse("by", "this rule is built in and counts by %s", known.By.Text)
	case mailbox && t.Only != nil:
		return refuse("only", "this rule protects every mailbox; exempt those that it is not to count")
	case mailbox && t.Then != "":
		return refuse("then", "this rule protects the mailbox; no challenge lifts it")
	case mailbox && t.Counts != "":
		return refuse("counts", "this rule protects every mailbox, and counts every email")
	case mailbox && t.Off:
		return refuse("off", "this rule cannot be removed; with shadow: true it refuses nothing")
	case mailbox && t.Count.Algorithm != "" && t.Count.Algorithm != slidingLog:
		return refuse("algorithm", "this rule is built in and is a "+slidingLog)
	case mailbox && t.Count.Limit != "" && tiersSetBy != "":
		return refuse("limit", "it is already set by %s", tiersSetBy)
	}
	return nil
}

// read reads a rule to where the one with its name is, or to the end. One that is off is checked as any other, and taken
// away.
func (t ruleText) read(r *reader) error {
	by, err := t.by()
	switch {
	case t.By.Text == "" && t.Off:
		return refuse("off", "this rule is not built in; leave it out")
	case err != nil:
		return err
	case t.Then != "" && t.Then != challenge:
		return refuse("then", "it must be "+challenge+"; without it the rule refuses")
	case t.Keep.or(1) < 1:
		return refuse("keep_for_first_sends", "it must be at least 1")
	case t.Ratio != nil:
		t.Count.Algorithm = cmp.Or(t.Count.Algorithm, slidingWindow)
	}
	t.Count.Algorithm = cmp.Or(t.Count.Algorithm, slidingLog)
	algorithm, err := t.Count.build(0)
	if err != nil {
		return err
	}
	rule := rules.Rule{Name: t.Name, By: by, Limiter: throttle.New(algorithm, nil), Shadow: t.Shadow, Challenge: t.Then == challenge}
	if t.Keep != nil {
		if rule.Resends, err = t.Count.build(int(*t.Keep)); err != nil {
			return err
		}
	}
	if err := cmp.Or(checkDelay(algorithm, r.SendDeadline), t.budget(&rule)); err != nil {
		return err
	}
	exempt, err := t.Exempt.read(r.name, "exempt.")
	if err != nil {
		return err
	}
	if !exempt.None() {
		rule.Cases = []rules.Case{{Some: exempt, File: filepath.Base(r.path)}}
		_ = r.once(t.Name, rule.Cases[0]) // no name is there twice
	}
	if t.Only != nil {
		if rule.Only, err = t.Only.read(r.name, "only."); err == nil && rule.Only.None() {
			err = refuse("only", "it names nothing, so the rule would count nothing")
		}
		if err != nil {
			return err
		}
	}
	i := r.index(t.Name)
	if i < 0 {
		i, r.Rules = len(r.Rules), append(r.Rules, rule)
	}
	r.Rules[i], r.written[t.Name] = rule, t.Count
	if t.Off {
		r.Rules = slices.Delete(r.Rules, i, i+1)
	}
	return nil
}

// by reads what the rule counts by: a trait, or two.
func (t ruleText) by() (rules.By, error) {
	all, given := rules.Bys(), strings.Split(t.By.Text, ",")
	oneOf := "it must be one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
	switch {
	case t.By.Text == "":
		return "", refuse("", "by is missing; %s", oneOf)
	case len(given) > 2 || slices.ContainsFunc(given, func(one string) bool { return !slices.Contains(all, rules.By(one)) }):
		return "", refuse("by", "%s, or a list of two", oneOf)
	case len(given) == 1:
		return rules.By(given[0]), nil
	}
	pair, ok := rules.Pair(rules.By(given[0]), rules.By(given[1]))
	if !ok {
		return "", refuse("by", "the two must differ, and all is no trait of some sends")
	}
	return pair, nil
}

func (t actionText) read(r *reader) error {
	if err := r.checkName(t.Name); err != nil {
		return err
	}
	t.Count.Algorithm = cmp.Or(t.Count.Algorithm, slidingLog)
	algorithm, err := t.Count.build(0)
	r.Actions = append(r.Actions, Action{t.Name, algorithm})
	return err
}
