package rulefile_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/rules/rulefile"
)

// rule is a file with one rule on its third line, below a name and what it counts by.
func rule(more string) string { return "rules:\n- name: a\n  by: all\n  " + more }

// wrong are files that cannot be right, and how what is said of each goes on after the path;
// with the end of the line it is all.
var wrong = []struct{ name, text, want string }{
	{"nothing", "", ": it is empty; a file with rules: [] has the built-in rules alone"},
	{"comments alone", "# rules:\n", ": it is empty"},
	{"no mapping", "- name: a", ": it must be lines of name: value, such as rules: or actions:"},
	{"a word", "hidden", ": it must be lines of name: value, such as rules: or actions:"},
	{"an unknown part", "rules: []\nactoins: []", ":2: actoins: there is no such part; a file has rules, actions"},
	{"a part twice", "rules: []\nrules: []", ":2: rules: it was already set by "},
	{"nothing after rules", "rules:", ":1: rules: it must be a list"},
	{"rules without dashes", "rules:\n  name: a", ":1: rules: it must be a list"},
	{"a word among rules", "rules: [a]", ":1: rule 1: it must be lines of name: value"},
	{"too many", "rules: [" + strings.Repeat("{name: a}, ", 33) + "]", ":1: rules: there can be 32 at most, not 33"},
	{"two documents", "rules: []\n---\nrules: []", ": it must be one document"},
	{"not YAML", "rules: [", ":1: this is not YAML that can be read"},

	{"no name", "rules:\n- {name: b, by: all, limit: q=1/1s}\n- by: all", ":3: rule 2: it has no name"},
	{"a name that will not do", "rules: [{name: My Rule}]", ":1: rule 1: name: a name is lower-case letters, digits, - and _, and starts with a letter"},
	{"a name too long", "rules: [{name: " + strings.Repeat("x", 33) + "}]", ":1: rule 1: name: a name has at most 32 characters"},
	{"an empty name", "rules: [{name: ''}]", ":1: rule 1: name: a name has at least one letter"},
	{"a name that answers use", "rules: [{name: lookups}]", ":1: rule lookups: name: this name is taken by a limit of mailgate's own"},
	{"an action by a name that answers use", "actions: [{name: guesses}]", ":1: action guesses: name: this name is taken by a limit of mailgate's own"},
	{"a name that is no text", "rules: [{name: 5}]", ":1: rule 1: name: it must be text"},
	{"a name twice", "rules:\n- {name: b, by: all, limit: q=1/1s}\n- {name: b}", ":3: rule b: name: the name is used twice, first in line 2"},
	{"twice, and off", "rules:\n- {name: client-ip, off: true}\n- {name: client-ip}", ":3: rule client-ip: name: the name is used twice"},
	{"an unknown part of a rule", rule("limits: q=1/1s"), ":4: rule a: limits: there is no such part; a rule has name, by, "},
	{"a part of a rule twice", rule("by: all"), ":4: rule a: by: it was already set by "},
	{"an anchor", rule("limit: &x q=1/1s"), ":4: rule a: limit: it must be text"},
	{"an alias", "rules:\n- &x {name: a}\n- *x", ":2: rule 1: it must be lines of name: value"},
	{"a merge", "rules:\n- name: a\n  <<: {by: all}", ":3: rule a: a name must be a plain word"},
	{"a tag", rule("limit: q=1/1s\n  shadow: !!bool true"), ":5: rule a: shadow: it must be true or false"},

	{"by nothing", "rules: [{name: a, limit: q=1/1s}]", ":1: rule a: it does not say by what it counts; by is one of mailbox, client_ip, api_key, domain, template, all"},
	{"by something else", "rules: [{name: a, by: client-ip}]", ":1: rule a: by: it must be one of mailbox, client_ip"},
	{"mailbox by something else", "rules: [{name: mailbox, by: all}]", ":1: rule mailbox: by: this rule is built in and counts by mailbox"},
	{"client-ip by something else", "rules: [{name: client-ip, by: all}]", ":1: rule client-ip: by: this rule is built in and counts by client_ip"},
	{"no mailbox", "rules: [{name: mailbox, off: true}]", ":1: rule mailbox: off: this rule cannot be removed"},
	{"mailbox counts otherwise", "rules: [{name: mailbox, algorithm: fixed-window, limit: q=1/1s}]", ":1: rule mailbox: algorithm: this rule is built in and is a sliding-log"},

	{"no limit", "rules:\n- name: a\n  by: all", ":2: rule a: it has no limit, such as minute=10/60s"},
	{"an empty limit", rule(`limit: ""`), ":4: rule a: limit: it is empty"},
	{"a null limit", rule("limit:"), ":4: rule a: limit: it must be text"},
	{"a list of limits", rule("limit: [q=1/1s]"), ":4: rule a: limit: it must be text"},
	{"a limit of nothing", rule("limit: q=0/1s"), ":4: rule a: limit: tier q: the limit must be between 1 and 1000, not 0"},
	{"a limit that is none", rule("limit: often"), `:4: rule a: limit: tier "often": write it as name=limit/window`},
	{"an unknown algorithm", rule("limit: q=1/1s\n  algorithm: gcra"), ":5: rule a: algorithm: it must be one of sliding-log, sliding-window, fixed-window, token-bucket, leaky-bucket"},
	{"several limits", rule("limit: q=1/1s,r=2/2s\n  algorithm: fixed-window"), ":4: rule a: limit: a fixed-window has one limit; several go with sliding-log"},
	{"a meter's limit of nothing", rule("limit: q=0/1s\n  algorithm: fixed-window"), ":4: rule a: limit: tier q: the limit must be between 1 and "},
	{"parts of a bucket", rule("algorithm: token-bucket\n  limit: q=1/1s\n  parts: 5"), ":6: rule a: parts: it goes with sliding-window, and this is a token-bucket"},
	{"a burst of a log", rule("limit: q=1/1s\n  burst: 5"), ":5: rule a: burst: it goes with token-bucket, and this is a sliding-log"},
	{"a queue of a window", rule("limit: q=1/1s\n  queue: 5\n  algorithm: sliding-window"), ":5: rule a: queue: it goes with leaky-bucket, and this is a sliding-window"},
	{"no queue", rule("limit: q=1/1s\n  algorithm: leaky-bucket"), ":2: rule a: a leaky-bucket needs queue"},
	{"a burst of none", rule("algorithm: token-bucket\n  limit: q=1/1s\n  burst: 0"), ":6: rule a: burst: it must be at least 1"},
	{"a queue of less", rule("algorithm: leaky-bucket\n  limit: q=1/1s\n  queue: -1"), ":6: rule a: queue: it must be at least 0"},
	{"a number in quotes", rule("algorithm: token-bucket\n  limit: q=1/1s\n  burst: '5'"), ":6: rule a: burst: it must be a whole number"},
	{"no whole number", rule("algorithm: token-bucket\n  limit: q=1/1s\n  burst: 5.5"), ":6: rule a: burst: it must be a whole number"},
	{"a hexadecimal number", rule("algorithm: token-bucket\n  limit: q=1/1s\n  burst: 0x5"), ":6: rule a: burst: it must be a whole number"},
	{"too large a number", rule("algorithm: token-bucket\n  limit: q=1/1s\n  burst: 99999999999999999999"), ":6: rule a: burst: it must be a whole number"},
	{"too many parts", rule("algorithm: sliding-window\n  limit: q=1001/1s\n  parts: 1001"), ":5: rule a: limit: tier q: a window has between 1 and 1000 parts, not 1001\n"},
	{"too many parts of what is left out", "rules: [{name: client-ip, parts: 1001}]", ":1: rule client-ip: tier minute: a window has between 1 and 1000 parts, not 1001\n"},
	{"nobody waits so long", rule("algorithm: leaky-bucket\n  limit: q=1/1s\n  queue: 15"), ":6: rule a: queue: the last of 15 would wait 15000 ms, and may wait 7500 ms: half of what a send may take, as the relay needs the rest"},
	{"half of the time is gone", rule("algorithm: leaky-bucket\n  limit: q=1/1s\n  queue: 8"), ":6: rule a: queue: the last of 8 would wait 8000 ms, and may wait 7500 ms"},
	{"half of a millisecond too long", rule("algorithm: leaky-bucket\n  limit: q=2/15001ms\n  queue: 1"), ":6: rule a: queue: the last of 1 would wait 7501 ms, and may wait 7500 ms"},
	{"zeros before a number", rule("algorithm: token-bucket\n  limit: q=1/1s\n  burst: 010"), ":6: rule a: burst: a number has no zeros before it"},
	{"more than a log takes", rule("limit: q=1001/1s"), ":4: rule a: limit: tier q: the limit must be between 1 and 1000, not 1001; sliding-window and fixed-window take more"},
	{"more than the mailbox's log takes", "rules: [{name: mailbox, limit: q=1001/1s}]", ":1: rule mailbox: limit: tier q: the limit must be between 1 and 1000, not 1001\n"},
	{"no limit at all", rule("limit: q=0/1s"), ":4: rule a: limit: tier q: the limit must be between 1 and 1000, not 0\n"},
	{"tabs", "rules:\n\t- name: a", ":2: this is not YAML that can be read: a tab cannot indent"},
	{"far too deep", strings.Repeat("[", 100_000), ":1: it is nested too deeply"},
	{"kept of a log", rule("limit: q=9/1s\n  keep_for_first_sends: 5"), ":5: rule a: keep_for_first_sends: a sliding-log cannot keep any; use another algorithm"},
	{"all kept", rule("algorithm: fixed-window\n  limit: q=9/1s\n  keep_for_first_sends: 9"), ":6: rule a: keep_for_first_sends: tier q: 9 cannot be kept back of 9"},
	{"none kept", rule("algorithm: fixed-window\n  limit: q=9/1s\n  keep_for_first_sends: 0"), ":6: rule a: keep_for_first_sends: it must be at least 1"},
	{"perhaps in the shadow", rule("limit: q=9/1s\n  shadow: perhaps"), ":5: rule a: shadow: it must be true or false"},
	{"yes, in words", rule("limit: q=9/1s\n  shadow: True"), ":5: rule a: shadow: it must be true or false"},
	{"a rule that is off is read", "rules: [{name: a, by: all, off: true, limit: x}]", `:1: rule a: limit: tier "x": write it as`},

	{"exempt as a list", rule("limit: q=1/1s\n  exempt: [a@b.example]"), ":5: rule a: exempt: it must be lines of name: value"},
	{"exempt from nothing known", rule("limit: q=1/1s\n  exempt: {domains: [b.example]}"), ":5: rule a: exempt: domains: there is no such part; exempt has mailboxes, networks, api_keys"},
	{"exempt, but no list", rule("limit: q=1/1s\n  exempt: {mailboxes: hidden@b.example}"), ":5: rule a: exempt: mailboxes: it must be a list"},
	{"exempt, but no text", rule("limit: q=1/1s\n  exempt:\n    api_keys:\n    - b\n    - 5"), ":8: rule a: exempt: api_keys: it must be text"},
	{"too many exempt", rule("limit: q=1/1s\n  exempt: {api_keys: [" + strings.Repeat("b, ", 1001) + "]}"), ":5: rule a: exempt: api_keys: there can be 1000 at most, not 1001"},
	{"a key with its secret", rule("limit: q=1/1s\n  exempt: {api_keys: ['hidden:hidden']}"), ":5: rule a: exempt: api_keys: it must be the name of an API key"},
	{"no network", rule("limit: q=1/1s\n  exempt: {networks: [home]}"), `:5: rule a: exempt: networks: it is neither an IP address nor a network`},
	{"no mailbox", rule("limit: q=1/1s\n  exempt: {mailboxes: [hidden]}"), ":5: rule a: exempt: mailboxes: it must be an address, or one with *, or a domain"},
	{"no address", rule("limit: q=1/1s\n  exempt: {mailboxes: ['hid den@b.example']}"), ":5: rule a: exempt: mailboxes: it is not an address"},
	{"no domain", rule("limit: q=1/1s\n  exempt: {mailboxes: ['@']}"), ":5: rule a: exempt: mailboxes: it is not an address"},
	{"no pattern", rule("limit: q=1/1s\n  exempt: {mailboxes: ['hidden..*@b.example']}"), ":5: rule a: exempt: mailboxes: it is not an address"},
	{"two @", rule("limit: q=1/1s\n  exempt: {mailboxes: [hidden@b@b.example]}"), ":5: rule a: exempt: mailboxes: it must be an address, or"},
	{"a star in the domain", rule("limit: q=1/1s\n  exempt: {mailboxes: ['hidden@*.example']}"), ":5: rule a: exempt: mailboxes: only the part before the @ may have a *"},
	{"a tag that is taken off", rule("limit: q=1/1s\n  exempt: {mailboxes: ['hidden+*@b.example']}"), ":5: rule a: exempt: mailboxes: no mailbox is counted under such a name"},
	{"a domain of another name", rule("limit: q=1/1s\n  exempt: {mailboxes: ['@also.example']}"), ":5: rule a: exempt: mailboxes: mailboxes of this domain are counted as those of one.example; write that"},
	{"a pattern in it", rule("limit: q=1/1s\n  exempt:\n    mailboxes:\n      - '@b.example'\n      - 'hidden*@also.example'"), ":8: rule a: exempt: mailboxes: mailboxes of this domain are counted as"},

	{"too many actions", "actions: [" + strings.Repeat("{name: a}, ", 257) + "]", ":1: actions: there can be 256 at most, not 257"},
	{"an action without a limit", "actions:\n- name: b", ":2: action b: it has no limit"},
	{"an action without a name", "actions:\n- limit: q=1/1s", ":2: action 1: it has no name"},
	{"an action by something", "actions: [{name: b, limit: q=1/1s, by: all}]", ":1: action b: by: there is no such part; an action has name, algorithm, limit, parts, burst, queue"},
	{"an action twice", "actions:\n- {name: b, limit: q=1/1s}\n- {name: b, limit: q=1/1s}", ":3: action b: name: the name is used twice, first in line 2"},
	{"an action's algorithm", "actions: [{name: b, limit: q=1/1s, algorithm: none}]", ":1: action b: algorithm: it must be one of"},
}

func TestWrong(t *testing.T) {
	for _, tt := range wrong {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.text)
			_, err := rulefile.Read(path, defaults())
			switch {
			case err == nil:
				t.Fatal("it was accepted")
			case !strings.HasPrefix(err.Error()+"\n", path+tt.want):
				t.Errorf("\n got %v\nwant %s%s…", err, path, tt.want)
			case strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "\n"):
				t.Errorf("an address, or more than one line: %q", err)
			}
		})
	}
}

// Wherever an address stands where it does not belong, the error does not repeat it.
func TestAddressesAreNotRepeated(t *testing.T) {
	const address = "hidden@b.example"
	for _, file := range []string{
		"HERE", "HERE: 1", "HERE: 1\nHERE: 2", "- HERE", "rules: HERE", "rules: [HERE]", "rules: {HERE: 1}", "actions: HERE", "actions: [HERE]",
		"rules: [{name: HERE}]", "rules: [{HERE: 1}]", "rules: [{HERE: 1, HERE: 2}]", "rules: [{name: a, HERE: {a: 1, a: 2}}]",
		"rules: [{name: [HERE]}]", "rules: [&HERE a]", "rules: [!HERE a]", "rules: [*HERE]", "rules: [{name: a, by: HERE}]", "rules:\n- HERE\n\t- a", "rules: [HERE", "rules: 'HERE", "%HERE",
		"actions: [{name: HERE, limit: q=1/1s}]", "actions: [{name: a, limit: HERE}]", "actions: [{name: a, limit: q=1/1s, HERE: 1}]",
		rule("algorithm: HERE"), rule("limit: HERE"), rule("limit: HERE=1/1s"), rule("limit: q=HERE/1s"), rule("limit: q=1/HERE"), rule("limit: q=1/1s,HERE"),
		rule("limit: q=1/1s\n  algorithm: fixed-window\n  keep_for_first_sends: HERE"), rule("limit: HERE\n  algorithm: fixed-window"), rule("limit: q=HERE/1s\n  algorithm: leaky-bucket\n  queue: 1"),
		rule("limit: q=1/1s\n  algorithm: token-bucket\n  burst: HERE"), rule("limit: q=1/1s\n  algorithm: leaky-bucket\n  queue: HERE"), rule("limit: q=1/1s\n  algorithm: sliding-window\n  parts: HERE"),
		rule("limit: q=1/1s\n  shadow: HERE"), rule("limit: q=1/1s\n  off: HERE"), rule("limit: q=1/1s\n  HERE: off"), rule("limit: q=1/1s\n  exempt: HERE"),
		rule("limit: q=1/1s\n  exempt: {HERE: 1}"), rule("limit: q=1/1s\n  exempt: {networks: HERE}"), rule("limit: q=1/1s\n  exempt: {networks: [HERE]}"), rule("limit: q=1/1s\n  exempt: {networks: [HERE/32]}"),
		rule("limit: q=1/1s\n  exempt: {api_keys: HERE}"), rule("limit: q=1/1s\n  exempt: {api_keys: [HERE]}"), rule("limit: q=1/1s\n  exempt: {mailboxes: HERE}"),
		rule("limit: q=1/1s\n  exempt: {mailboxes: [HERE.*]}"), rule("limit: q=1/1s\n  exempt: {mailboxes: ['HERE HERE']}"), rule("limit: q=1/1s\n  exempt: {mailboxes: {HERE: HERE}}"), rule("limit: q=1/1s\n  exempt: {mailboxes: ['+HERE*']}"),
	} {
		_, err := rulefile.Read(write(t, strings.ReplaceAll(file, "HERE", address)), defaults())
		if err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "b.example") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The mailbox's limit stands in one place.
func TestLimitInTwoPlaces(t *testing.T) {
	d := defaults()
	d.TiersSetBy = "MAILGATE_TIERS"
	path := write(t, "rules:\n- name: mailbox\n  limit: q=1/1s")
	_, err := rulefile.Read(path, d)
	if want := path + ":3: rule mailbox: limit: it was already set by MAILGATE_TIERS"; err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
	if _, err := rulefile.Read(write(t, "rules:\n- name: mailbox\n  shadow: true"), d); err != nil {
		t.Error(err)
	}
}

// A file that is not there, or far too large, is named.
func TestUnreadable(t *testing.T) {
	large := write(t, strings.Repeat("#", 256<<10+1))
	for path, want := range map[string]string{
		"/does/not/exist": "cannot read the file: open /does/not/exist",
		"/":               "/ is a directory",
		large:             "the file " + large + " is larger than 262144 bytes",
	} {
		if _, err := rulefile.Read(path, defaults()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
