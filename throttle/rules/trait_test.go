package rules_test

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle/rules"
)

// full is a send of which everything is known.
func full(t *testing.T) (s rules.Send) {
	t.Helper()
	s.Mailbox, s.Client, s.Unverifiable = "alice@mail.example.co.uk", netip.MustParseAddr("2001:db8::7"), true
	fields := reflect.ValueOf(&s).Elem()
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Kind() == reflect.String && field.String() == "" {
			field.SetString("some-" + strings.ToLower(fields.Type().Field(i).Name))
		} else if field.IsZero() {
			t.Fatalf("say here what %s of a send can be", fields.Type().Field(i).Name)
		}
	}
	return s
}

// Each trait has what every place needs that names or counts it, and what its limits are of.
func TestTraits_Each_IsWhole(t *testing.T) {
	for _, by := range rules.Bys() {
		if by.Key(full(t)) == "" || by.Whose() == "" {
			t.Errorf("%s: key %q, whose %q", by, by.Key(full(t)), by.Whose())
		}
		if _, ok := by.Read("example", address.Identity{}); ok && by.Subject() == "" {
			t.Errorf("%s reads a subject and does not say how it is written", by)
		}
	}
	for _, pair := range [][2]rules.By{{rules.ByAll, rules.ByDomain}, {rules.ByDomain, rules.ByDomain}, {"moon", rules.ByDomain}, {rules.ByDomain, ""}} {
		if by, ok := rules.Pair(pair[0], pair[1]); ok {
			t.Errorf("%v are the pair %s", pair, by)
		}
	}
	pair, _ := rules.Pair(rules.ByAPIKey, rules.ByDomain)
	if key := pair.Key(rules.Send{Mailbox: "a@b.example"}); key != "" {
		t.Errorf("a send without a caller counts as %q", key)
	}
	if by := rules.By("moon"); by.Key(full(t)) != "" || by.Whose() != "" {
		t.Error("there is a trait moon")
	}
}

// A countdown holds a send as text: none of its traits may get lost. A solved challenge is no trait.
func TestParseSend_EachTrait_IsCarried(t *testing.T) {
	for _, s := range []rules.Send{full(t), {Mailbox: "bob@example.com"}, {Mailbox: "bob@example.com", Template: "code"}} {
		s.Solved = ""
		got := must.Get(rules.ParseSend(string(s.AppendText(nil))))(t)
		was, is := reflect.ValueOf(s), reflect.ValueOf(got)
		for i := range was.NumField() {
			if was.Type().Field(i).Name == "Unverifiable" {
				continue // no countdown is of such a send
			}
			if was.Field(i).Interface() != is.Field(i).Interface() {
				t.Errorf("%s became %v: is its trait carried?", was.Type().Field(i).Name, is.Field(i))
			}
		}
	}
}

// During a rolling upgrade a node reads the texts of versions with fewer traits or more, whose traits that it does not
// know it ignores. A text has no more than it must.
func TestParseSend_OtherVersions_AreRead(t *testing.T) {
	client := netip.MustParseAddr("203.0.113.7")
	for text, want := range map[string]rules.Send{
		"a@b.example\nweb\t203.0.113.7\tcode": {Mailbox: "a@b.example", Caller: "web", Client: client, Template: "code"},
		"a@b.example\nweb\t\tcode":            {Mailbox: "a@b.example", Caller: "web", Template: "code"},
		"a@b.example\n\t\t":                   {Mailbox: "a@b.example"},
		"a@b.example\nweb\t\tcode\t\tnew":     {Mailbox: "a@b.example", Caller: "web", Template: "code"},
		"a@b.example\nweb":                    {Mailbox: "a@b.example", Caller: "web"},
	} {
		if got := must.Get(rules.ParseSend(text))(t); got != want {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	if text := string(rules.Send{Mailbox: "a@b.example", Caller: "web"}.AppendText(nil)); text != "a@b.example\nweb" {
		t.Errorf("a send with one trait is %q", text)
	}
	for _, text := range []string{"", "a@b.example", "a@b.example\nweb\tx\tcode", "a@b.example\nweb\tfe80::1%eth0\tcode"} {
		if got, err := rules.ParseSend(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
