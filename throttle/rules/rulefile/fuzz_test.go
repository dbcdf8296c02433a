package rulefile_test

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/mailgate/mailgate/throttle/rules/rulefile"
)

// Any file is refused in one line that names it and repeats no address, or is rules that a Set takes. Read again it
// is the same.
func FuzzParse(f *testing.F) {
	for _, m := range mistakes {
		f.Add(m.text)
	}
	for _, text := range []string{
		"rules: []",
		rule("by: [client_ip, api_key]\n  limit: q=3/1h\n  only: {purposes: [x]}\n  exempt: {networks: [192.0.2.0/24, '2001:db8::/48']}"),
		rule("algorithm: fixed-window\n  limit: q=9/1s\n  keep_for_first_sends: 2"),
		rule("counts: unverified\n  limit: q=9/1h\n  ratio: 0.3\n  then: challenge"),
		rule("algorithm: leaky-bucket\n  limit: q=9/1s\n  queue: 3\n  shadow: true"),
		"rules: [{name: mailbox, exempt: {mailboxes: ['e2e-*@b.example']}}]\noverrides: [{rule: mailbox, domains: [b.example], limit: q=1/24h, comment: x}]\n" +
			"deny: [{name: a, domains: [x.example], mailboxes: ['@y.example'], shadow: true}]\nactions: [{name: a, algorithm: token-bucket, limit: q=1/1s, burst: 4}]",
		"overrides: [{rule: client-ip, networks: [192.0.2.0/24], limit: m=9/60s}]",
		"overrides: [{rule: client-ip, mailboxes: [a@b.example], limit: m=9/60s}]", // its key does not say whether it is for a send
		"rules: [{name: hidden@b.example}]", "rules: [{name: a, hidden@b.example: 1}]", rule("limit: hidden@b.example=1/1s"),
	} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "rules.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "file") {
			return // it names a list, whose path is repeated
		}
		servertest.Write(t, path, text)
		file, err := rulefile.Read(path, defaults())
		if err != nil {
			if said := err.Error(); !strings.Contains(said, path) || strings.ContainsAny(said, "\r\n") || strings.Contains(said, "hidden@") {
				t.Fatalf("%q: %q", text, said)
			}
			return
		}
		again, err := rulefile.Read(path, defaults())
		if err != nil || file.Digest() != again.Digest() || !rulefile.Compare(file, again).None() || !reflect.DeepEqual(lines(file), lines(again)) {
			t.Fatalf("%q: read again: %v", text, err)
		}
		set, err := setOf(t, file)
		if err != nil {
			t.Fatalf("%q: no Set takes it: %v", text, err)
		}
		send := rules.Send{Mailbox: "a@b.example", Client: netip.MustParseAddr("192.0.2.1"), Caller: "web", Template: "code", Purpose: "login"}
		if d, err := set.Take(t.Context(), send, throttle.NewID()); err != nil || d.Allowed != (d.Denied == "") {
			t.Fatalf("%q: the first send: %v, %+v", text, err, d)
		}
	})
}

// setOf returns the rules and denials of a file, over records in memory.
func setOf(t testing.TB, file rulefile.File) (*rules.Set, error) {
	store := must.Get(cache.Open(cache.Options{}))(t)
	t.Cleanup(func() { _ = store.Close() })
	limiter := func(name string, a throttle.Algorithm) *throttle.Limiter { return local.New(store.Table(name), a) }
	all := slices.Clone(file.Rules)
	for i := range all {
		r := &all[i]
		r.Limiter = limiter(r.Table(), r.Limiter.Algorithm)
		if b := r.Budget; b != nil && b.Percent > 0 {
			r.Budget = &rules.Budget{Percent: b.Percent, Verified: limiter(r.Table()+"-verified", b.Verified.Algorithm)}
		}
	}
	return rules.New(rules.Options{Denials: file.Denials}, all...)
}
