package rulefile_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/rules/rulefile"
)

// fold is a mailbox identity for these tests: letter case and +tag do not count, one domain
// stands for another, and only plain addresses are accepted.
func fold(address string) (string, error) {
	local, domain, ok := strings.Cut(strings.ToLower(address), "@")
	if !ok || local == "" || !strings.Contains(strings.Trim(domain, "."), ".") || strings.ContainsAny(address, " *<,") || strings.Contains(domain, "@") || strings.Contains(local, "..") {
		return "", errors.New("it is not an address")
	}
	local, _, _ = strings.Cut(local, "+")
	switch domain {
	case "also.example":
		domain = "one.example"
	case "bücher.example":
		domain = "xn--bcher-kva.example"
	case "hidden.sub.example":
		local, domain = "hidden", "sub.example"
	}
	return local + "@" + domain, nil
}

func defaults() rulefile.Defaults {
	return rulefile.Defaults{Tiers: throttle.DefaultPolicy(), Mailbox: fold, SendDeadline: 15_000, Sender: "no-reply@mail.acme.example"}
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func lines(f rulefile.File) (all []string) {
	for _, r := range f.Rules {
		line := fmt.Sprintf("%s by %s: %s", r.Name, r.By, r.Limiter.Algorithm)
		if r.Resends != nil {
			first, resends := r.Limiter.Algorithm.Peek(nil, 0), r.Resends.Peek(nil, 0)
			line += fmt.Sprintf("; keeps %d, resends %s", first.Remaining()-resends.Remaining(), r.Resends)
		}
		if r.Challenge {
			line += "; challenge"
		}
		if b := r.Budget; b != nil {
			line += fmt.Sprintf("; unverified, %d %%", b.Percent)
		}
		if r.Shadow {
			line += "; shadow"
		}
		exempt := ""
		for _, c := range r.Cases {
			if c.Limit == nil {
				exempt = fmt.Sprint("; exempt ", names(c.Some, rules.ByMailbox, rules.ByClientIP, rules.ByAPIKey))
				continue
			}
			line += fmt.Sprint("; ", names(c.Some, rules.ByMailbox, rules.ByDomain, rules.ByClientIP), " have ", c.Limit, c.Comment)
			if c.Shadow {
				line += " in shadow"
			}
		}
		line += exempt
		if o := r.Only; !o.None() {
			line += fmt.Sprint("; only ", names(o, rules.ByAPIKey, rules.ByTemplate, rules.ByPurpose))
		}
		all = append(all, line)
	}
	for _, d := range f.Denials {
		all = append(all, fmt.Sprint("denial ", d.Name, ": ", names(d.Some, rules.ByMailbox, rules.ByDomain, rules.ByClientIP, rules.ByAPIKey), " ", d.Shadow))
	}
	for _, a := range f.Actions {
		all = append(all, "action "+a.Name+": "+a.Algorithm.String())
	}
	return all
}

// names are the texts of some lists, each in brackets.
func names(s rules.Some, lists ...rules.By) string {
	all := make([]string, len(lists))
	for i, by := range lists {
		var texts []string
		for _, name := range s[by] {
			texts = append(texts, name.Text)
		}
		all[i] = fmt.Sprint(texts)
	}
	return strings.Join(all, " ")
}

var (
	mailbox = "mailbox by mailbox: " + throttle.Algorithm(throttle.DefaultPolicy()).String()
	client  = "client-ip by client_ip: sliding-window minute=100/60s in parts of 1000 ms"
)

func TestRead_Sample_MeansWhatItsCommentsSay(t *testing.T) {
	file := must.Get(rulefile.Read("../../../deploy/rules.yaml", defaults()))(t)
	want := []string{
		mailbox + "; exempt [@qa.acme.example e2e-*@acme.example] [] []",
		client + "; [] [] [198.51.100.0/24] have sliding-window minute=1000/60s in parts of 1000 msan office behind one address; exempt [] [192.0.2.0/24] [batch]",
		"provider by all: fixed-window day=50000/24h; keeps 5000, resends fixed-window day=45000/24h",
		"callers by api_key: token-bucket second=20/1s, bursts of 100; shadow",
		"resets by client_ip+api_key: hour=3/1h; only [] [] [password-reset]",
		"unproven by client_ip: sliding-window floor=10/24h in parts of 1440000 ms; unverified, 30 %",
		"pace by all: leaky-bucket second=14/1s, a queue of 50",
		"denial abuse: [] [mailinator.example] [203.0.113.0/24] [] false",
		"action reply: minute=10/60s,hour=100/1h",
	}
	if got := lines(file); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestRead_ValidFile_HasItsRules(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"no rules", "rules: []", []string{mailbox, client}},
		{"a limit for the mailbox", "rules: [{name: mailbox, limit: 'q=1/1s, r=2/1m'}]", []string{"mailbox by mailbox: q=1/1s,r=2/60s", client}},
		{"a shadow mailbox rule", "rules: [{name: mailbox, shadow: true}]", []string{mailbox + "; shadow", client}},
		{"no client-ip", "rules: [{name: client-ip, off: true}]", []string{mailbox}},
		{"finer client-ip", "rules: [{name: client-ip, parts: 600}]", []string{mailbox, "client-ip by client_ip: sliding-window minute=100/60s in parts of 100 ms"}},
		{"another client-ip", "rules: [{name: client-ip, algorithm: sliding-log, limit: 'a=5/1m,b=9/1h'}]", []string{mailbox, "client-ip by client_ip: a=5/60s,b=9/1h"}},
		{"a rule that is off", "rules: [{name: a, by: all, limit: q=1/1s, off: true}]", []string{mailbox, client}},
		{"burst left out", "rules: [{name: a, by: domain, algorithm: token-bucket, limit: q=7/1s}]", []string{mailbox, client, "a by domain: token-bucket q=7/1s, bursts of 7"}},
		{"no queue", "rules: [{name: a, by: template, algorithm: leaky-bucket, limit: q=7/1s, queue: 0}]", []string{mailbox, client, "a by template: leaky-bucket q=7/1s, a queue of 0"}},
		{"the longest queue", "rules: [{name: a, by: all, algorithm: leaky-bucket, limit: q=1/1s, queue: 7}]", []string{mailbox, client, "a by all: leaky-bucket q=1/1s, a queue of 7"}},
		{"kept of a burst", "rules: [{name: a, by: all, algorithm: token-bucket, limit: q=1/1s, burst: 9, keep_for_first_sends: 4}]", []string{mailbox, client, "a by all: token-bucket q=1/1s, bursts of 9; keeps 4, resends token-bucket q=1/1s, bursts of 5"}},
		{"an action may wait longer", "actions: [{name: a, algorithm: leaky-bucket, limit: q=1/1s, queue: 100}]", []string{mailbox, client, "action a: leaky-bucket q=1/1s, a queue of 100"}},
		{"a challenge", "rules: [{name: client-ip, then: challenge}, {name: a, by: domain, limit: q=1/1s, then: challenge, shadow: true}]", []string{mailbox, client + "; challenge", "a by domain: q=1/1s; challenge; shadow"}},
		{"budgets", "rules: [{name: a, by: client_ip, counts: unverified, limit: floor=10/24h, ratio: 0.3}, {name: b, by: [mailbox, api_key], counts: unverified, algorithm: sliding-window, limit: q=1/1s}, {name: c, by: all, counts: unverified, limit: q=1/1s, ratio: 1, shadow: true}, {name: client-ip, counts: unverified}, {name: d, by: domain, counts: unverified, limit: q=1/1s, then: challenge}]",
			[]string{mailbox, client + "; unverified, 0 %", "a by client_ip: sliding-window floor=10/24h in parts of 1440000 ms; unverified, 30 %", "b by mailbox+api_key: sliding-window q=1/1s in parts of 17 ms; unverified, 0 %", "c by all: sliding-window q=1/1s in parts of 17 ms; unverified, 100 %; shadow", "d by domain: q=1/1s; challenge; unverified, 0 %"}},
		{"a byte order mark", "\ufeffrules: []", []string{mailbox, client}},
		{"a rule and an action of one name", "rules: [{name: a, by: all, limit: q=1/1s}]\nactions: [{name: a, limit: q=1/1s}]", []string{mailbox, client, "a by all: q=1/1s", "action a: q=1/1s"}},
		{"two traits, for some", "rules: [{name: a, by: [mailbox, api_key], limit: q=1/1s, only: {purposes: [sign-up, login], templates: [code], api_keys: [web]}}, {name: b, by: [purpose, client_ip], limit: q=1/1s}]",
			[]string{mailbox, client, "a by mailbox+api_key: q=1/1s; only [web] [code] [login sign-up]", "b by client_ip+purpose: q=1/1s"}},
		{"denials", "deny: [{name: a, domains: [Bücher.example., x.example, x.example], networks: ['2001:db8::/32'], api_keys: [web], mailboxes: ['*@mail.example'], shadow: true}, {name: b, domains: [acme.example], force: true}]",
			[]string{mailbox, client, "denial a: [*@mail.example] [x.example xn--bcher-kva.example] [2001:db8::/32] [web] true", "denial b: [] [acme.example] [] [] false"}},
		{"overrides", "overrides: [{rule: mailbox, mailboxes: [A+b@c.example], domains: [d.example], limit: 'q=1/60s,r=3/24h'}, {rule: mailbox, mailboxes: [e@d.example], limit: 'q=9/1s', comment: a test}, {rule: mailbox, domains: [f.example], limit: q=1/24h, shadow: true}, {rule: client-ip, networks: [192.0.2.0/24], limit: m=1000/60s}, {rule: client-ip, networks: [0.0.0.0/0], limit: m=9/60s}, {rule: mailbox, domains: [acme.example], limit: q=1/24h}, {rule: client-ip, networks: [192.0.2.7], limit: m=1/60s}]",
			[]string{mailbox + "; [a@c.example] [d.example] [] have q=1/60s,r=3/24h; [e@d.example] [] [] have q=9/1sa test; [] [f.example] [] have q=1/24h in shadow; [] [acme.example] [] have q=1/24h",
				client + "; [] [] [192.0.2.0/24] have sliding-window m=1000/60s in parts of 1000 ms; [] [] [0.0.0.0/0] have sliding-window m=9/60s in parts of 1000 ms; [] [] [192.0.2.7/32] have sliding-window m=1/60s in parts of 1000 ms"}},
		{"patterns", "rules: [{name: client-ip, exempt: {mailboxes: [Alice+x@Also.example, 'E2E-*x*X@Acme.Example', 'A*B@acme.example', '@QA.example', '*@b.example', '@bücher.example', '*z@Also.example']}}]",
			[]string{mailbox, client + "; exempt [*@b.example *z@one.example @qa.example @xn--bcher-kva.example a*b@acme.example alice@one.example e2e-*x*x@acme.example] [] []"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := must.Get(rulefile.Read(write(t, tt.text), defaults()))(t)
			if got := lines(file); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
			}
		})
	}
}

// rule is a file with one rule on its second line, and more of it from the fourth line on.
func rule(more string) string { return "rules:\n- name: a\n  by: all\n  " + more }

// mistakes are files with one, and what follows the file's path in the error.
var mistakes = []struct{ name, text, want string }{
	{"nothing", "", ": it has neither rules nor actions"},
	{"a list", "- name: a", ":1: sequence was used where mapping is expected"},
	{"an unknown name", "rules: []\nactoins: []", ":2: unknown key actoins"},
	{"a name twice", "rules: []\nrules: []", ":2: the name is used twice"},
	{"too many rules", "rules: [" + strings.Repeat("{name: a}, ", 33) + "]", ":1: there can be 32 rules, not 33"},
	{"two documents", "rules: []\n---\nrules: []", ": it must be one YAML document"},
	{"an open bracket", "rules: [", ":1: this is not valid YAML: "},
	{"a tab", "rules:\n\t- name: a", ":2: this is not valid YAML: "},

	{"no name", "rules:\n- {name: b, by: all, limit: q=1/1s}\n- by: all", ":3: rule: name is missing"},
	{"a bad name", "rules: [{name: My Rule}]", ":1: rule: name: a name is lower-case letters"},
	{"a reserved name", "rules: [{name: lookups}]", ":1: rule lookups: name: this name is taken by a built-in limit"},
	{"a rule twice", "rules:\n- {name: b, by: all, limit: q=1/1s}\n- {name: b}", ":3: rule b: name: the name is used twice"},
	{"an unknown part", rule("limits: q=1/1s"), ":4: unknown key limits"},

	{"by nothing", "rules: [{name: a, limit: q=1/1s}]", ":1: rule a: by is missing; it must be one of mailbox, client_ip, api_key, domain, purpose, template, all"},
	{"by something else", "rules: [{name: a, by: client-ip}]", ":1: rule a: by: it must be one of mailbox, client_ip, api_key, domain, purpose, template, all"},
	{"by three", "rules: [{name: a, by: [api_key, domain, template]}]", ":1: rule a: by: it must be one of mailbox, client_ip, api_key, domain, purpose, template, all, or a list of two"},
	{"by one twice", "rules: [{name: a, by: [api_key, api_key]}]", ":1: rule a: by: the two must differ, and all is no trait of some sends"},
	{"by all and more", "rules: [{name: a, by: [all, api_key]}]", ":1: rule a: by: the two must differ"},
	{"by a written pair", "rules: [{name: a, by: mailbox+api_key}]", ":1: rule a: by: it must be one of"},
	{"mailbox for some", "rules: [{name: mailbox, only: {purposes: [sign-up]}}]", ":1: rule mailbox: only: this rule protects every mailbox"},
	{"only nothing", rule("limit: q=1/1s\n  only: {}"), ":5: rule a: only: it names nothing"},
	{"only empty lists", rule("limit: q=1/1s\n  only: {purposes: []}"), ":5: rule a: only: it names nothing"},
	{"no purpose", rule("limit: q=1/1s\n  only: {purposes: [Hidden Sign-up]}"), ":5: rule a: only.purposes[0]: a name is lower-case"},
	{"no template", rule("limit: q=1/1s\n  exempt: {templates: [../hidden]}"), ":5: rule a: exempt.templates[0]: it must be the name of a template"},
	{"off, and not built in", "rules:\n- name: clientip\n  off: true", ":3: rule clientip: off: this rule is not built in; leave it out"},
	{"mailbox by all", "rules: [{name: mailbox, by: all}]", ":1: rule mailbox: by: this rule is built in and counts by mailbox"},
	{"mailbox by nothing", "rules:\n- name: mailbox\n  by: []", ":3: rule mailbox: by: this rule is built in and counts by mailbox"},
	{"a challenge for the mailbox", "rules:\n- name: mailbox\n  then: challenge", ":3: rule mailbox: then: this rule protects the mailbox"},
	{"no known challenge", rule("limit: q=9/1s\n  then: riddle"), ":5: rule a: then: it must be challenge"},
	{"the name of the tokens' limit", "rules: [{name: challenge, by: all, limit: q=1/1s}]", ":1: rule challenge: name: this name is taken by a built-in limit"},
	{"no mailbox rule", "rules: [{name: mailbox, off: true}]", ":1: rule mailbox: off: this rule cannot be removed"},
	{"mailbox counts otherwise", "rules: [{name: mailbox, algorithm: fixed-window, limit: q=1/1s}]", ":1: rule mailbox: algorithm: this rule is built in"},

	{"no limit", "rules:\n- name: a\n  by: all", ":2: rule a: limit is missing; write it as name=limit/window, such as minute=10/60s"},
	{"a list of limits", rule("limit: [q=1/1s]"), ":4: it must be text"},
	{"a limit of 0", rule("limit: q=0/1s"), ":4: rule a: limit: tier q: the limit must be between 1 and 1000, not 0"},
	{"no limit at all", rule("limit: often"), `:4: rule a: limit: tier "often": write it as name=limit/window`},
	{"an unknown algorithm", rule("limit: q=1/1s\n  algorithm: gcra"), ":5: rule a: algorithm: it must be one of sliding-log, "},
	{"several limits", rule("limit: q=1/1s,r=2/2s\n  algorithm: fixed-window"), ":4: rule a: limit: a fixed-window has one limit"},
	{"parts of a bucket", rule("algorithm: token-bucket\n  limit: q=1/1s\n  parts: 5"), ":6: rule a: parts: it is for sliding-window, not for token-bucket"},
	{"no queue", rule("limit: q=1/1s\n  algorithm: leaky-bucket"), ":2: rule a: a leaky-bucket needs queue"},
	{"a burst of 0", rule("algorithm: token-bucket\n  limit: q=1/1s\n  burst: 0"), ":6: rule a: burst: it must be at least 1"},
	{"a queue of less", rule("algorithm: leaky-bucket\n  limit: q=1/1s\n  queue: -1"), ":6: it must be a whole number, 0 or more"},
	{"too large a number", rule("algorithm: token-bucket\n  limit: q=1/1s\n  burst: 99999999999999999999"), ":6: it must be a whole number, 0 or more"},
	{"too many parts", rule("algorithm: sliding-window\n  limit: q=1001/1s\n  parts: 1001"), ":5: rule a: limit: tier q: "},
	{"too long a wait", rule("algorithm: leaky-bucket\n  limit: q=1/1s\n  queue: 8"), ":6: rule a: queue: the last of 8 sends would wait 8000 ms; at most 7500 ms"},
	{"half a millisecond too long", rule("algorithm: leaky-bucket\n  limit: q=2/15001ms\n  queue: 1"), ":6: rule a: queue: the last of 1 sends would wait 7501 ms"},
	{"kept of a log", rule("limit: q=9/1s\n  keep_for_first_sends: 5"), ":5: rule a: keep_for_first_sends: a sliding-log cannot keep sends"},
	{"all kept", rule("algorithm: fixed-window\n  limit: q=9/1s\n  keep_for_first_sends: 9"), ":6: rule a: keep_for_first_sends: it must be less than 9"},
	{"none kept", rule("algorithm: fixed-window\n  limit: q=9/1s\n  keep_for_first_sends: 0"), ":6: rule a: keep_for_first_sends: it must be at least 1"},
	{"a share of nothing", rule("limit: q=9/1s\n  ratio: 0.3"), ":5: rule a: ratio: it goes with counts: unverified"},
	{"a share of a log", rule("limit: q=9/1s\n  counts: unverified\n  ratio: 1\n  algorithm: sliding-log"), ":7: rule a: algorithm: with a ratio it is a sliding-window"},
	{"no share", rule("limit: q=9/1s\n  counts: unverified\n  ratio: 0"), ":6: it must be a number from 0.01 to 10, of up to two decimals"},
	{"too fine a share", rule("limit: q=9/1s\n  counts: unverified\n  ratio: 0.333"), ":6: it must be a number from 0.01 to 10, of up to two decimals"},
	{"too large a share", rule("limit: q=9/1s\n  counts: unverified\n  ratio: 11"), ":6: it must be a number from 0.01 to 10, of up to two decimals"},
	{"counts what", rule("limit: q=9/1s\n  counts: verified"), ":5: rule a: counts: it must be unverified"},
	{"a budget for everybody", rule("limit: q=9/1s\n  counts: unverified"), ":5: rule a: counts: counted by all, a few sends would block everybody; add then: challenge, or"},
	{"a budget of the mailbox", "rules:\n- name: mailbox\n  counts: unverified", ":3: rule mailbox: counts: this rule protects every mailbox"},
	{"a budget with two limits", "rules:\n- name: a\n  by: client_ip\n  counts: unverified\n  limit: q=1/1s,r=2/2s", ":5: rule a: limit: with counts: unverified it is one limit"},
	{"a budget with two limits for some", "rules:\n- {name: a, by: client_ip, counts: unverified, limit: q=1/1s}\noverrides:\n- rule: a\n  networks: [192.0.2.0/24]\n  limit: q=1/1s,r=2/2s", ":6: override of a: limit: with counts: unverified it is one limit, with the window of the rule"},
	{"a budget with another window for some", "rules:\n- {name: a, by: client_ip, counts: unverified, limit: q=1/1s}\noverrides:\n- rule: a\n  networks: [192.0.2.0/24]\n  limit: q=1/2s", ":6: override of a: limit: with counts: unverified it is one limit, with the window of the rule"},
	{"no consequence", "rules:\n- name: a\n  by: client_ip\n  limit: q=1/1s\n  then:", ":5: this key has no value"},
	{"an empty consequence", "rules:\n- name: a\n  by: client_ip\n  limit: q=1/1s\n  then: ''", ":5: this key has no value"},
	{"a budget of a bucket", "rules:\n- name: a\n  by: client_ip\n  algorithm: token-bucket\n  counts: unverified\n  limit: q=1/1s", ":5: rule a: counts: it needs a sliding-log or a sliding-window"},
	{"a budget that keeps", "rules:\n- name: a\n  by: client_ip\n  algorithm: sliding-window\n  counts: unverified\n  limit: q=9/1s\n  keep_for_first_sends: 2", ":7: rule a: keep_for_first_sends: it does not go with counts: unverified"},
	{"maybe a shadow", rule("limit: q=9/1s\n  shadow: perhaps"), ":5: it must be true or false"},
	{"off, and wrong", "rules: [{name: a, by: all, off: true, limit: x}]", `:1: rule a: limit: tier "x"`},

	{"exempt by suffix", rule("limit: q=1/1s\n  exempt: {domains: [co.uk]}"), ":5: rule a: exempt.domains[0]: this is a whole public suffix"},
	{"exempt without a list", rule("limit: q=1/1s\n  exempt: {mailboxes: hidden@b.example}"), ":5: string was used where sequence is expected"},
	{"a key with its secret", rule("limit: q=1/1s\n  exempt: {api_keys: ['hidden:hidden']}"), ":5: rule a: exempt.api_keys[0]: it must be the name of an API key"},
	{"no network", rule("limit: q=1/1s\n  exempt: {networks: [home]}"), ":5: rule a: exempt.networks[0]: write an IP address or a network"},
	{"no address", rule("limit: q=1/1s\n  exempt: {mailboxes: ['hid den@b.example']}"), ":5: rule a: exempt.mailboxes[0]: it is not an address"},
	{"no pattern", rule("limit: q=1/1s\n  exempt: {mailboxes: ['hidden..*@b.example']}"), ":5: rule a: exempt.mailboxes[0]: it is not an address"},
	{"two @", rule("limit: q=1/1s\n  exempt: {mailboxes: [hidden@b@b.example]}"), ":5: rule a: exempt.mailboxes[0]: it must be an address, or"},
	{"a star in the domain", rule("limit: q=1/1s\n  exempt: {mailboxes: ['hidden@*.example']}"), ":5: rule a: exempt.mailboxes[0]: only the part before the @"},
	{"a tag that is removed", rule("limit: q=1/1s\n  exempt: {mailboxes: ['hidden+*@b.example']}"), ":5: rule a: exempt.mailboxes[0]: +tags, and dots that a provider ignores, are removed"},

	{"a denial without a name", "deny:\n- domains: [x.example]", ":2: denial: name is missing"},
	{"a denial named as a rule", "deny: [{name: client-ip, domains: [x.example]}]", ":1: denial client-ip: name: a rule has this name"},
	{"a denial named as another", "rules: [{name: a, by: all, limit: q=1/1s}]\ndeny: [{name: a, domains: [x.example]}]", ":2: denial a: name: the name is used twice"},
	{"a denial of nothing", "deny: [{name: a}]", ":1: denial a: it names nothing"},
	{"a denied suffix", "deny:\n- name: a\n  domains: [x.example, co.uk]", ":3: denial a: domains[1]: this is a whole public suffix"},
	{"no domain", "deny: [{name: a, domains: ['hidden@b.example']}]", ":1: denial a: domains[0]: it is not a domain"},
	{"a denied mailbox of a provider", "deny: [{name: a, domains: [hidden.sub.example]}]", ":1: denial a: domains[0]: a provider reads this domain as one mailbox"},
	{"the own domain", "deny: [{name: a, domains: [mail.acme.example]}]", ":1: denial a: domains[0]: it denies the domain of MAILGATE_FROM; if that is meant, add force: true"},
	{"a domain above", "deny: [{name: a, domains: [Acme.Example.]}]", ":1: denial a: domains[0]: it denies the domain of MAILGATE_FROM"},
	{"mailboxes of the own domain", "deny: [{name: a, mailboxes: ['**@mail.acme.example']}]", ":1: denial a: mailboxes[0]: it denies the domain of MAILGATE_FROM"},
	{"every visitor", "deny: [{name: a, networks: [0.0.0.0/0]}]", ":1: denial a: networks[0]: 0.0.0.0/0 is every visitor"},
	{"no file", "deny:\n- name: a\n  file: /does/not/exist", ":3: denial a: file: cannot read the file"},

	{"an override of nothing", "overrides: [{rule: gone, mailboxes: [a@b.example], limit: q=1/1s}]", ":1: override of gone: rule: no rule has this name"},
	{"an override for nothing", "overrides: [{rule: mailbox, limit: q=1/1s}]", ":1: override of mailbox: it names nothing"},
	{"an override for another", "overrides: [{rule: mailbox, networks: [192.0.2.0/24], limit: q=1/1s}]", ":1: override of mailbox: the rule counts by mailbox, so it has no other limits for networks"},
	{"an override without a limit", "overrides: [{rule: mailbox, mailboxes: [a@b.example]}]", ":1: override of mailbox: limit is missing"},
	{"a looser limit", "overrides:\n- rule: mailbox\n  mailboxes: [hidden@b.example]\n  limit: q=2/24h", ":2: override of mailbox: it admits more than the mailbox's own limits; add a comment"},
	{"a shorter limit", "overrides: [{rule: mailbox, mailboxes: [a@b.example], limit: q=1/60s}]", ":1: override of mailbox: it admits more"},
	{"another window", "overrides: [{rule: client-ip, networks: [192.0.2.0/24], limit: q=1/61s}]", ":1: override of client-ip: limit: it needs the window of the rule"},
	{"a limit of 0", "overrides:\n- rule: mailbox\n  mailboxes: [hidden@b.example]\n  limit: q= 00/60s", ":4: override of mailbox: limit: 0 admits nothing; name who gets no email in deny"},
	{"0 beside another", "overrides: [{rule: mailbox, mailboxes: [a@b.example], limit: 'q=0/1s,r=1/2s'}]", ":1: override of mailbox: limit: 0 admits nothing"},
	{"two for the exempt", "rules: [{name: mailbox, exempt: {domains: [b.example]}}]\noverrides: [{rule: mailbox, domains: [b.example], limit: q=1/24h}]", ":2: override of mailbox: another override of the rule, or its exempt, is for the same"},
	{"two for one", "overrides:\n- {rule: mailbox, mailboxes: [hidden@b.example], limit: q=1/24h}\n- {rule: mailbox, mailboxes: [Hidden+x@b.example], limit: q=1/24h}", ":3: override of mailbox: another override of the rule, or its exempt, is for the same"},
	{"a long comment", "overrides: [{rule: mailbox, mailboxes: [a@b.example], limit: q=1/24h, comment: \"a\\nb\"}]", ":1: override of mailbox: comment: it is one line of visible characters"},
	{"a comment that turns around", "overrides: [{rule: mailbox, mailboxes: [a@b.example], limit: q=1/24h, comment: \"a\\u202Eb\"}]", ":1: override of mailbox: comment: it is one line of visible characters"},
	{"beside kept sends", "rules: [{name: a, by: domain, algorithm: fixed-window, limit: q=9/1s, keep_for_first_sends: 2}]\noverrides: [{rule: a, domains: [b.example], limit: q=3/1s}]", ":2: override of a: rule: this rule keeps sends"},

	{"a misspelt key", "overides: [{rule: mailbox}]", ":1: unknown key overides; did you mean overrides?"},
	{"a misspelt key of a rule", rule("limit: q=1/1s\n  exmept: {mailboxes: [a@b.example]}"), ":5: unknown key exmept; did you mean exempt?"},
	{"a misspelt list", rule("limit: q=1/1s\n  exempt: {api_kyes: [web]}"), ":5: unknown key api_kyes; did you mean api_keys?"},
	{"no such key", rule("limit: q=1/1s\n  colour: red"), ":5: unknown key colour"},

	{"too many actions", "actions: [" + strings.Repeat("{name: a}, ", 257) + "]", ":1: there can be 256 actions, not 257"},
	{"an action by something", "actions: [{name: b, limit: q=1/1s, by: all}]", ":1: unknown key by"},
}

func TestRead_Mistake_NamesFileLineAndRule(t *testing.T) {
	for _, tt := range mistakes {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.text)
			_, err := rulefile.Read(path, defaults())
			switch {
			case err == nil:
				t.Fatal("it was accepted")
			case !strings.HasPrefix(err.Error(), path+tt.want):
				t.Errorf("\n got %v\nwant %s%s…", err, path, tt.want)
			case strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "\n"):
				t.Errorf("it repeats an address, or has more than one line: %q", err)
			}
		})
	}
}

func TestRead_AddressInTheWrongPlace_IsNotRepeated(t *testing.T) {
	const address = "hidden@b.example"
	for _, file := range []string{
		"HERE", "HERE: 1", "HERE: 1\nHERE: 2", "- HERE", "rules: HERE", "rules: [HERE]", "rules: {HERE: 1}", "actions: HERE", "actions: [HERE]",
		"rules: [{name: HERE}]", "rules: [{HERE: 1}]", "rules: [{HERE: 1, HERE: 2}]", "rules: [{name: a, HERE: {a: 1, a: 2}}]",
		"rules: [{name: [HERE]}]", "rules: [!HERE a]", "rules: [*HERE]", "rules: [{name: a, by: HERE}]", "rules:\n- HERE\n\t- a", "rules: [HERE", "rules: 'HERE", "%HERE",
		"actions: [{name: HERE, limit: q=1/1s}]", "actions: [{name: a, limit: HERE}]", "actions: [{name: a, limit: q=1/1s, HERE: 1}]",
		rule("algorithm: HERE"), rule("limit: HERE"), rule("limit: HERE=1/1s"), rule("limit: q=HERE/1s"), rule("limit: q=1/HERE"), rule("limit: q=1/1s,HERE"),
		rule("limit: q=1/1s\n  algorithm: token-bucket\n  burst: HERE"), rule("limit: q=1/1s\n  shadow: HERE"), rule("limit: q=1/1s\n  HERE: off"), rule("limit: q=1/1s\n  exempt: HERE"),
		rule("limit: q=1/1s\n  exempt: {HERE: 1}"), rule("limit: q=1/1s\n  exempt: {networks: HERE}"), rule("limit: q=1/1s\n  exempt: {networks: [HERE/32]}"),
		rule("limit: q=1/1s\n  exempt: {api_keys: HERE}"), rule("limit: q=1/1s\n  exempt: {api_keys: [HERE]}"), rule("limit: q=1/1s\n  exempt: {mailboxes: HERE}"),
		rule("limit: q=1/1s\n  exempt: {mailboxes: [HERE.*]}"), rule("limit: q=1/1s\n  exempt: {mailboxes: ['HERE HERE']}"), rule("limit: q=1/1s\n  exempt: {mailboxes: {HERE: HERE}}"), rule("limit: q=1/1s\n  exempt: {mailboxes: ['+HERE*']}"),
	} {
		_, err := rulefile.Read(write(t, strings.ReplaceAll(file, "HERE", address)), defaults())
		if err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "b.example") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The public lists of disposable domains are read as they are published.
func TestRead_List_EachFormAndMistake(t *testing.T) {
	big := strings.Repeat("# none\n", 3)
	for _, tt := range []struct{ list, want string }{
		{"mailinator.com\nB.example # why\n\n  bücher.example  \nx.example.\n", "[] [b.example mailinator.com x.example xn--bcher-kva.example] []"},
		{"\ufeff# a list\r\nmailinator.com\r\nmailinator.com\r\n", "[] [mailinator.com] []"},
		{"x.example\nHidden+x@b.example\n@c.example\n203.0.113.0/24\n2001:db8::1\n", "[@c.example hidden@b.example] [x.example] [2001:db8::1/128 203.0.113.0/24]"},
		{"", ":0: it lists nothing"}, {big, ":3: it lists nothing"}, {"\n", ":1: it lists nothing"},
		{"x.example\nmailinat", ":2: the last line has no line break, so the file may be cut off"},
		{"x.example\nmailinator.com", ":2: the last line has no line break"},
		{"x.example\n\x00\x01binary\n", ":2: this is not text"}, {"\xff\xfe\n", ":1: this is not text"}, {"x\x1b[1m.example\n", ":1: this is not text"},
		{"x.example\ny.example\nmail\n", ":3: it is not a domain"}, {"x.example\nco.uk\n", ":2: this is a whole public suffix"}, {"com.\n", ":1: it is not a domain"},
		{"<html>\n", ":1: it is not a domain"}, {"hidden@b@b.example\n", ":1: it must be an address"}, {"x.example, y.example\n", ":1: it is not a domain"},
		{"x.example\n\nacme.example\n", ":3: it denies the domain of MAILGATE_FROM"}, {"@mail.acme.example\n", ":1: it denies the domain of MAILGATE_FROM"}, {"::/0\n", ":1: ::/0 is every visitor"},
	} {
		path := write(t, "deny: [{name: a, file: list.txt}]")
		list := filepath.Join(filepath.Dir(path), "list.txt")
		must.OK(t, os.WriteFile(list, []byte(tt.list), 0o600))
		file, err := rulefile.Read(path, defaults())
		if strings.HasPrefix(tt.want, "[") {
			if err != nil || names(file.Denials[0].Some, rules.ByMailbox, rules.ByDomain, rules.ByClientIP) != tt.want {
				t.Errorf("%q: %v, %+v, want %s", tt.list, err, file.Denials, tt.want)
			}
			continue
		}
		if want := list + strings.Replace(tt.want, ":0:", ":", 1); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q:\n got %v\nwant %s", tt.list, err, want)
		}
	}
}

// Each case of a send is told with its comment and the line that names the send, in the list or the rules file.
func TestRead_Cases_KnowTheirLines(t *testing.T) {
	path := write(t, `rules:
  - name: mailbox
    exempt:
      mailboxes:
        - "@qa.example"
        - e2e-*@acme.example
  - {name: resets, by: domain, limit: q=1/1s, only: {purposes: [login]}, exempt: {domains: [x.example]}}
deny:
  - name: disposable
    domains: [a.example,
      b.example]
    file: list.txt
  - {name: trial, file: list.txt, shadow: true}
overrides:
  - rule: mailbox
    domains: [c.example]
    limit: q=1000/24h
    comment: customers
  - {rule: client-ip, networks: [192.0.2.0/24], limit: minute=9/60s}
  - {rule: mailbox, file: list.txt, limit: q=1/24h, shadow: true}
`)
	servertest.Write(t, filepath.Join(filepath.Dir(path), "list.txt"), "\ufeff# published\r\n\nz.example\nA.example\nc.example # again\nc.example\n")
	file := must.Get(rulefile.Read(path, defaults()))(t)
	for to, want := range map[string]string{
		"x@qa.example":          "mailbox: exempt (rules.yaml:5)",
		"e2e-7@acme.example":    "mailbox: exempt (rules.yaml:6)",
		"x@x.example":           "",
		"x@x.example login":     "resets: exempt (rules.yaml:7)",
		"x@sub.b.example":       "disposable: deny (rules.yaml:11)",
		"x@a.example":           "disposable: deny (rules.yaml:10)",
		"x@z.example":           "disposable: deny (list.txt:3)",
		"x@d.example 192.0.2.7": "client-ip: override (rules.yaml:19)",
	} {
		t.Run(to, func(t *testing.T) {
			if got := matches(t, file, to); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
	file.Denials = file.Denials[1:]
	if got, want := matches(t, file, "x@c.example"), "mailbox: override (customers, rules.yaml:16); mailbox: shadow override (list.txt:5); trial: shadow deny (list.txt:5)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	before := must.Get(rulefile.Read(path, defaults()))(t)
	servertest.Write(t, path, "# a comment\n"+string(must.Get(os.ReadFile(path))(t)))
	if after := must.Get(rulefile.Read(path, defaults()))(t); after.Digest() != before.Digest() || !rulefile.Compare(before, after).None() {
		t.Error("other lines are another meaning")
	}
}

// matches are the cases of a file that decide about a send: to a mailbox, for a visitor or a purpose.
func matches(t testing.TB, file rulefile.File, send string) string {
	t.Helper()
	mailbox, rest, _ := strings.Cut(send, " ")
	s := rules.Send{Mailbox: mailbox, Purpose: rest}
	if client, err := netip.ParseAddr(rest); err == nil {
		s.Client = client
	}
	var texts []string
	for _, m := range must.Get(setOf(t, file))(t).Matches(s) {
		texts = append(texts, m.String())
	}
	return strings.Join(texts, "; ")
}

// A published list may have a public suffix, which is left out and counted; a list with many of them is damaged.
func TestRead_ListWithSuffix_LeavesItOut(t *testing.T) {
	domains := ""
	for i := range 198 {
		domains += fmt.Sprintf("d%d.example\n", i)
	}
	for suffixes, want := range map[string]int{"co.uk\n": 1, "# com\nco.uk\nCo.JP. # why\n": 2, "co.uk\nco.jp\nco.nz\n": 0} {
		for _, text := range []string{"deny: [{name: a, file: list.txt}]", "overrides: [{rule: mailbox, file: list.txt, limit: q=1/24h}]"} {
			path := write(t, text)
			list := servertest.Write(t, filepath.Join(filepath.Dir(path), "list.txt"), suffixes+domains)
			file, err := rulefile.Read(path, defaults())
			if want == 0 {
				if err == nil || !strings.HasPrefix(err.Error(), list+":1: this is a whole public suffix") {
					t.Errorf("%q, %s: %v", suffixes, text, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%q, %s: %v", suffixes, text, err)
				continue
			}
			var some []rules.Some
			for _, d := range file.Denials {
				some = append(some, d.Some)
			}
			for _, c := range file.Mailbox().Cases {
				some = append(some, c.Some)
			}
			notes := []string{fmt.Sprintf("%s: %d of %d entries are left out, as they are whole public suffixes", list, want, 198+want)}
			if len(some) != 1 || len(some[0][rules.ByDomain]) != 198 || !slices.Equal(file.Notes, notes) {
				t.Errorf("%q, %s: %d lists, %d domains, notes %q", suffixes, text, len(some), len(some[0][rules.ByDomain]), file.Notes)
			}
		}
	}
}

func TestRead_MailboxLimitInTwoPlaces_Refuses(t *testing.T) {
	d := defaults()
	d.TiersSetBy = "MAILGATE_TIERS"
	path := write(t, "rules:\n- name: mailbox\n  limit: q=1/1s")
	_, err := rulefile.Read(path, d)
	if want := path + ":3: rule mailbox: limit: it is already set by MAILGATE_TIERS"; err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

func TestRead_Unreadable_NamesThePath(t *testing.T) {
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

func TestCompare_ChangedFile_NamesWhatDiffers(t *testing.T) {
	const old = "rules: [{name: a, by: all, limit: q=1/1s}, {name: b, by: all, limit: q=1/1s}]\nactions: [{name: a, limit: q=1/1s}]"
	before := must.Get(rulefile.Read(write(t, old), defaults()))(t)
	first := func(from, to string) string { return strings.Replace(old, from, to, 1) }
	for _, tt := range []struct{ text, want, restarted string }{
		{old, "[] [] []", ""},
		{"actions:\n- limit: q=1/1000ms\n  name: a\nrules:\n- {by: all, limit: q=1/1s, name: b, shadow: false}\n- {by: all, limit: q=1/1s, name: a}\n- name: mailbox", "[] [] []", ""},
		{"rules: []", "[] [a action a b] []", ""},
		{first("actions: [", "actions: [{name: c, limit: q=1/1s}, "), "[action c] [] []", ""},
		{first("q=1/1s", "q=2/1s"), "[] [] [a]", ""},
		{first("q=1/1s", "q=1/2s"), "[] [] [a]", ""},
		{first("by: all", "by: domain"), "[] [] [a]", "a"},
		{first("by: all", "by: [domain, api_key]"), "[] [] [a]", "a"},
		{first("by: all", "by: all, only: {purposes: [x]}"), "[] [] [a]", ""},
		{old + "\ndeny: [{name: d, domains: [x.example]}]", "[denial d] [] []", ""},
		{old + "\noverrides: [{rule: client-ip, networks: [192.0.2.0/24], limit: m=9/60s}]", "[] [] [client-ip]", ""},
		{first("by: all", "by: all, shadow: true"), "[] [] [a]", ""},
		{first("by: all", "by: all, exempt: {api_keys: [x]}"), "[] [] [a]", ""},
		{first("by: all", "by: all, algorithm: token-bucket"), "[] [] [a]", "a"},
		{first("rules: [", "rules: [{name: client-ip, off: true}, {name: mailbox, limit: q=1/1s}, "), "[] [client-ip] [mailbox]", ""},
		{first("rules: [", "rules: [{name: client-ip, limit: minute=9/60s}, "), "[] [] [client-ip]", ""},
		{first("rules: [", "rules: [{name: client-ip, limit: minute=100/50s}, "), "[] [] [client-ip]", "client-ip"},
		{first("rules: [", "rules: [{name: client-ip, parts: 30}, "), "[] [] [client-ip]", "client-ip"},
	} {
		after, err := rulefile.Read(write(t, tt.text), defaults())
		if err != nil {
			t.Error(err)
			continue
		}
		changes := rulefile.Compare(before, after)
		same := tt.want == "[] [] []"
		if got := fmt.Sprint(changes.Added, changes.Removed, changes.Changed); got != tt.want || changes.None() != same {
			t.Errorf("%s\n got %s, want %s", tt.text, got, tt.want)
		}
		if got := strings.Join(changes.Restarted, ", "); got != tt.restarted {
			t.Errorf("%s\nrestarted: %q, want %q", tt.text, got, tt.restarted)
		}
		if before.Digest() == after.Digest() != same || len(after.Digest()) != 10 {
			t.Errorf("%s\ndigests: %s and %s", tt.text, before.Digest(), after.Digest())
		}
	}
}
