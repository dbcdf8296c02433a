package rulefile

import (
	"fmt"

	"github.com/mailgate/mailgate/boundedfile"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/strictyaml"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/meter"
)

// A File is what an operator wants: every rule in force, the built-in ones too, and the
// actions.
type File struct {
	Rules   []Rule
	Actions []Action
}

// Mailbox is the rule of that name, which every file that was read has.
func (f File) Mailbox() Rule {
	for _, r := range f.Rules {
		if r.Name == rules.MailboxRule {
			return r
		}
	}
	return Rule{}
}

// A Rule is one limit that sends have to keep.
type Rule struct {
	Name string
	By   rules.By
	Count
	// KeepForFirstSends is how many are kept back from mails to a mailbox that was sent
	// one before, and Resends the meter that those are left with; nil if none are.
	KeepForFirstSends int
	Resends           meter.Meter
	Shadow            bool
	Exempt            rules.Exempt
}

// An Action is a limit of its own, to be asked about by its name.
type Action struct {
	Name string
	Count
}

// A Count is how it is counted: exactly one of the two.
type Count struct {
	Tiers throttle.Policy // sliding-log, which keeps each moment
	Meter meter.Meter     // any other algorithm
}

// String names the algorithm and its numbers, such as "sliding-log minute=1/60s".
func (c Count) String() string {
	if c.Meter != nil {
		return c.Meter.String()
	}
	return slidingLog + " " + c.Tiers.String()
}

// Defaults are what a file is read with.
type Defaults struct {
	// Tiers limit the rule mailbox where the file does not. If TiersSetBy says that
	// somebody set them, and where, the file must not.
	Tiers      throttle.Policy
	TiersSetBy string
	// Mailbox is the key that mails to an address are counted by. Its error is a
	// sentence without the address.
	Mailbox func(address string) (key string, err error)
	// SendDeadline is how many milliseconds a send may take as a whole. No rule may
	// have one wait longer than half of it.
	SendDeadline int64
}

// ClientIPRule is the built-in rule that protects from one visitor with many mailboxes.
const ClientIPRule = "client-ip"

// Default is what is in force without a file: the rule mailbox with its tiers, and a
// hundred sends a minute for each visitor's address.
func Default(d Defaults) (File, error) {
	built, err := builtIn(d)
	return File{Rules: built}, err
}

func builtIn(d Defaults) (all []Rule, err error) {
	for _, name := range []string{rules.MailboxRule, ClientIPRule} {
		set := presetOf(name, d)
		count, err := newCount(set.algorithm, set.limit, numbers{})
		if err != nil {
			return nil, fmt.Errorf("making the rule %s: %w", name, err)
		}
		all = append(all, Rule{Name: name, By: set.by, Count: count})
	}
	return all, nil
}

// What a file may hold.
const (
	maxFile    = 256 << 10 // bytes
	maxRules   = 32        // every send asks them all
	maxActions = 256
	maxExempt  = 1000 // of a kind, in a rule
)

// Read reads the file at the path.
func Read(path string, d Defaults) (File, error) {
	text, err := boundedfile.Read(path, maxFile)
	if err != nil {
		return File{}, err
	}
	return parse(path, text, d)
}

// parse reads the text of a file. An empty one is refused: it is more likely to be in
// the middle of being written than to mean that there are no rules.
func parse(path string, text []byte, d Defaults) (File, error) {
	file, err := Default(d)
	if err != nil {
		return File{}, err
	}
	root, err := strictyaml.Parse(path, text)
	if err != nil {
		return File{}, err
	}
	if !root.Given() {
		return File{}, root.Refuse("it is empty; a file with rules: [] has the built-in rules alone")
	}
	if !root.IsMapping() {
		return File{}, root.Refuse("it must be lines of name: value, such as rules: or actions:")
	}
	whole, err := readParts(root, "a file", "rules", "actions")
	if err != nil {
		return File{}, err
	}
	if file.Rules, err = readRules(whole, file.Rules, d); err != nil {
		return File{}, err
	}
	file.Actions, err = readActions(whole)
	if err != nil {
		return File{}, err
	}
	return file, nil
}
