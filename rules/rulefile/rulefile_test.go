package rulefile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/rules/rulefile"
	"github.com/mailgate/mailgate/strictyaml"
	"github.com/mailgate/mailgate/throttle"
)

// fold is an identity for these tests: letter case and +tag do not count, one domain
// stands for another, and nothing but plain addresses will do.
func fold(address string) (string, error) {
	local, domain, ok := strings.Cut(strings.ToLower(address), "@")
	if !ok || local == "" || domain == "" || strings.ContainsAny(address, " *") || strings.Contains(local, "..") {
		return "", errors.New("it is not an address")
	}
	local, _, _ = strings.Cut(local, "+")
	switch domain {
	case "also.example":
		domain = "one.example"
	case "bücher.example":
		domain = "xn--bcher-kva.example"
	}
	return local + "@" + domain, nil
}

func defaults() rulefile.Defaults {
	return rulefile.Defaults{Tiers: throttle.DefaultPolicy(), Mailbox: fold, SendDeadline: 15_000}
}

// write makes a rules file and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// spell writes a file out, a line each.
func spell(f rulefile.File) (lines []string) {
	for _, r := range f.Rules {
		line := fmt.Sprintf("%s by %s: %s", r.Name, r.By, r.Count)
		if r.Resends != nil {
			line += fmt.Sprintf("; keeps %d, resends %s", r.KeepForFirstSends, r.Resends)
		}
		if r.Shadow {
			line += "; shadow"
		}
		if e := r.Exempt; len(e.Mailboxes)+len(e.Networks)+len(e.Callers) > 0 {
			line += fmt.Sprint("; exempt ", e.Mailboxes, e.Networks, e.Callers)
		}
		lines = append(lines, line)
	}
	for _, a := range f.Actions {
		lines = append(lines, "action "+a.Name+": "+a.Count.String())
	}
	return lines
}

const (
	builtMailbox = "mailbox by mailbox: sliding-log minute=1/60s,hour=5/1h,day=10/24h"
	builtClient  = "client-ip by client_ip: sliding-window minute=100/60s in 60 parts"
)

// The sample to start from means what its comments say.
func TestSample(t *testing.T) {
	file, err := rulefile.Read("../../deploy/rules.yaml", defaults())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		builtMailbox + "; exempt [@qa.acme.example e2e-*@acme.example] [] []",
		builtClient + "; exempt [] [192.0.2.0/24] [batch]",
		"provider by all: fixed-window day=50000/24h; keeps 5000, resends fixed-window day=45000/24h",
		"callers by api_key: token-bucket second=20/1s, bursts of 100; shadow",
		"pace by all: leaky-bucket second=14/1s, a queue of 50",
		"action reply: sliding-log minute=10/60s,hour=100/1h",
	}
	if got := spell(file); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// What files say, beyond the two rules that are always there.
func TestRead(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"no rules", "rules: []", []string{builtMailbox, builtClient}},
		{"no part of them", "actions: [{name: a, limit: q=1/1s}]", []string{builtMailbox, builtClient, "action a: sliding-log q=1/1s"}},
		{"a limit for the mailbox", "rules: [{name: mailbox, limit: 'q=1/1s, r=2/1m'}]", []string{"mailbox by mailbox: sliding-log q=1/1s,r=2/60s", builtClient}},
		{"the mailbox in the shadow", "rules: [{name: mailbox, shadow: true}]", []string{builtMailbox + "; shadow", builtClient}},
		{"no client-ip", "rules: [{name: client-ip, off: true}]", []string{builtMailbox}},
		{"not no client-ip", "rules: [{name: client-ip, off: false}]", []string{builtMailbox, builtClient}},
		{"a finer client-ip", "rules: [{name: client-ip, parts: 600}]", []string{builtMailbox, "client-ip by client_ip: sliding-window minute=100/60s in 600 parts"}},
		{"another client-ip", "rules: [{name: client-ip, algorithm: sliding-log, limit: 'a=5/1m,b=9/1h'}]", []string{builtMailbox, "client-ip by client_ip: sliding-log a=5/60s,b=9/1h"}},
		{"a rule that is off", "rules: [{name: a, by: all, limit: q=1/1s, off: true}]", []string{builtMailbox, builtClient}},
		{"a burst by itself", "rules: [{name: a, by: domain, algorithm: token-bucket, limit: q=7/1s}]", []string{builtMailbox, builtClient, "a by domain: token-bucket q=7/1s, bursts of 7"}},
		{"no queue", "rules: [{name: a, by: template, algorithm: leaky-bucket, limit: q=7/1s, queue: 0}]", []string{builtMailbox, builtClient, "a by template: leaky-bucket q=7/1s, a queue of 0"}},
		{"the longest queue", "rules: [{name: a, by: all, algorithm: leaky-bucket, limit: q=1/1s, queue: 7}]", []string{builtMailbox, builtClient, "a by all: leaky-bucket q=1/1s, a queue of 7"}},
		{"an action may wait longer", "actions: [{name: a, algorithm: leaky-bucket, limit: q=1/1s, queue: 100}]", []string{builtMailbox, builtClient, "action a: leaky-bucket q=1/1s, a queue of 100"}},
		{"a queue for half of the time", "rules: [{name: a, by: all, algorithm: leaky-bucket, limit: q=2/15s, queue: 1}]", []string{builtMailbox, builtClient, "a by all: leaky-bucket q=2/15s, a queue of 1"}},
		{"a byte order mark", "\ufeffrules: []", []string{builtMailbox, builtClient}},
		{"windows of two units", "rules: [{name: a, by: all, limit: 'q=1/1h30m, az_2=5/2h'}]", []string{builtMailbox, builtClient, "a by all: sliding-log q=1/90m,az_2=5/2h"}},
		{"a rule and an action of one name", "rules: [{name: a, by: all, limit: q=1/1s}]\nactions: [{name: a, limit: q=1/1s}]", []string{builtMailbox, builtClient, "a by all: sliding-log q=1/1s", "action a: sliding-log q=1/1s"}},
		{"as many keys as may be", "rules: [{name: client-ip, exempt: {api_keys: [" + strings.Repeat("azAZ09._-, ", 1000) + "]}}]", []string{builtMailbox, builtClient + "; exempt [] [] [azAZ09._-]"}},
		{"patterns", "rules: [{name: client-ip, exempt: {mailboxes: [Alice+x@Also.example, 'E2E-*x*X@Acme.Example', 'A*B@acme.example', '@QA.example', '*@b.example', '@bücher.example']}}]",
			[]string{builtMailbox, builtClient + "; exempt [*@b.example @qa.example @xn--bcher-kva.example a*b@acme.example alice@one.example e2e-*x*x@acme.example] [] []"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file, err := rulefile.Read(write(t, tt.text), defaults())
			if err != nil {
				t.Fatal(err)
			}
			if got := spell(file); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(tt.want, "\n     "))
			}
		})
	}
}

// Where spellings count, a pattern keeps its own.
func TestPatternsWithoutFolding(t *testing.T) {
	d := defaults()
	d.Mailbox = func(address string) (string, error) {
		local, domain, _ := strings.Cut(address, "@")
		return local + "@" + strings.ToLower(domain), nil
	}
	file, err := rulefile.Read(write(t, "rules: [{name: mailbox, exempt: {mailboxes: ['E2E+*@Acme.example', Bob@Acme.example]}}]"), d)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(file.Mailbox().Exempt.Mailboxes); got != "[Bob@acme.example E2E+*@acme.example]" {
		t.Error(got)
	}
}

// Without a file the two built-in rules are in force, and only the tiers can be missing.
func TestDefault(t *testing.T) {
	file, err := rulefile.Default(defaults())
	if err != nil || !reflect.DeepEqual(spell(file), []string{builtMailbox, builtClient}) {
		t.Errorf("%q, %v", spell(file), err)
	}
	if _, err := rulefile.Default(rulefile.Defaults{}); err == nil {
		t.Error("no tiers, and no error")
	}
}

// A rule or action that is there, gone or different is named; what means the same is not.
// One whose record counts no more is named as well.
func TestCompare(t *testing.T) {
	const old = "rules: [{name: a, by: all, limit: q=1/1s}, {name: b, by: all, limit: q=1/1s}]\nactions: [{name: a, limit: q=1/1s}]"
	tests := []struct{ text, want, anew string }{
		{old, "[] [] []", ""},
		{"actions:\n- limit: q=1/1000ms\n  name: a\nrules:\n- {by: all, limit: q=1/1s, name: b, shadow: false}\n- {by: all, limit: q=1/1s, name: a}\n- name: mailbox", "[] [] []", ""},
		{"rules: []", "[] [a action a b] []", ""},
		{strings.Replace(old, "actions: [", "actions: [{name: c, limit: q=1/1s}, ", 1), "[action c] [] []", ""},
		{strings.Replace(old, "q=1/1s", "q=2/1s", 1), "[] [] [a]", ""},
		{strings.Replace(old, "q=1/1s", "q=1/2s", 1), "[] [] [a]", ""},
		{strings.Replace(old, "by: all", "by: domain", 1), "[] [] [a]", "a"},
		{strings.Replace(old, "by: all", "by: all, shadow: true", 1), "[] [] [a]", ""},
		{strings.Replace(old, "by: all", "by: all, exempt: {api_keys: [x]}", 1), "[] [] [a]", ""},
		{strings.Replace(old, "by: all", "by: all, algorithm: token-bucket", 1), "[] [] [a]", "a"},
		{strings.Replace(old, "name: a, limit: q=1/1s", "name: a, algorithm: fixed-window, limit: q=1/1s", 1), "[] [] [action a]", "action a"},
		{strings.Replace(old, "rules: [", "rules: [{name: client-ip, off: true}, {name: mailbox, limit: q=1/1s}, ", 1), "[] [client-ip] [mailbox]", ""},
		{strings.Replace(old, "rules: [", "rules: [{name: client-ip, limit: minute=9/60s}, ", 1), "[] [] [client-ip]", ""},
		{strings.Replace(old, "rules: [", "rules: [{name: client-ip, limit: minute=100/50s}, ", 1), "[] [] [client-ip]", "client-ip"},
		{strings.Replace(old, "rules: [", "rules: [{name: client-ip, parts: 30}, ", 1), "[] [] [client-ip]", "client-ip"},
	}
	before, err := rulefile.Read(write(t, old), defaults())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
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
		if got := strings.Join(changes.BegunAnew, ", "); got != tt.anew {
			t.Errorf("%s\nbegun anew: %q, want %q", tt.text, got, tt.anew)
		}
		if before.Digest() == after.Digest() != same || len(after.Digest()) != 10 {
			t.Errorf("%s\ndigests: %s and %s", tt.text, before.Digest(), after.Digest())
		}
	}
}

// Lists of the exempt that mean the same are the same.
func TestCompareTheExempt(t *testing.T) {
	exempt := func(lists string) rulefile.File {
		file, err := rulefile.Read(write(t, "rules: [{name: mailbox, exempt: {"+lists+"}}]"), defaults())
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, tt := range []struct {
		one, other string
		same       bool
	}{
		{"mailboxes: [a@b.example, 'c*@b.example', '@d.example']", "mailboxes: ['@D.example', a@b.example, 'c*@b.example', a+tag@b.example]", true},
		{"networks: [192.0.2.0/24, '2001:db8::1', 10.0.0.0/8]", "networks: ['2001:0db8::1', 10.0.0.0/8, 192.0.2.0/24, 10.0.0.0/8]", true},
		{"api_keys: [web, batch], networks: []", "api_keys: [batch, web, batch]", true},
		{"api_keys: [web, batch]", "api_keys: [web]", false},
		{"networks: [10.0.0.0/8]", "networks: [10.0.0.0/9]", false},
		{"mailboxes: [a@b.example]", "mailboxes: ['a*@b.example']", false},
	} {
		one, other := exempt(tt.one), exempt(tt.other)
		if rulefile.Compare(one, other).None() != tt.same || (one.Digest() == other.Digest()) != tt.same {
			t.Errorf("%s and %s: %+v, %s and %s", tt.one, tt.other, rulefile.Compare(one, other), one.Digest(), other.Digest())
		}
	}
}

// Whatever is in a file, it is refused in one line or can be read to the end.
func FuzzRead(f *testing.F) {
	sample, err := os.ReadFile("../../deploy/rules.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
	for _, tt := range wrong {
		f.Add(tt.text)
	}
	path := filepath.Join(f.TempDir(), "rules.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := rulefile.Read(path, defaults())
		if err != nil {
			var place *strictyaml.Error
			if !errors.As(err, &place) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("not a line that names its place: %q", err)
			}
			return
		}
		for _, r := range file.Rules {
			if (r.Meter == nil) == r.Tiers.IsZero() || (r.Resends == nil) != (r.KeepForFirstSends == 0) {
				t.Errorf("not whole: %+v", r)
			}
		}
		if file.Mailbox().Name != "mailbox" || !rulefile.Compare(file, file).None() {
			t.Errorf("%q", spell(file))
		}
	})
}
