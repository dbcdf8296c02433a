package rules

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
)

// By is the trait that a rule counts sends by, or two at once: each visitor of each caller is then
// counted alone.
type By string

// The traits. ByAll counts every send alike.
const (
	ByMailbox  By = "mailbox"
	ByClientIP By = "client_ip"
	ByAPIKey   By = "api_key"
	ByDomain   By = "domain"
	ByPurpose  By = "purpose"
	ByTemplate By = "template"
	ByAll      By = "all"
)

// trait is what there is to know of one.
type trait struct {
	by      By
	list    string // the key of its names in a file of rules; empty if no sends are named by it
	whose   string // what its limits are of, for people
	subject string // how an operator writes what it counts by; empty if no operator does
	// key returns what a send is counted under, or nothing if that is unknown.
	key func(Send) string
	// read reads a subject into a send. It refuses what no send can have.
	read func(subject string, of address.Identity, to *Send) bool
}

// traits are all of them, from those that few sends share to those that all share.
var traits = []trait{
	{
		by: ByMailbox, list: "mailboxes", whose: "this mailbox", subject: "an address",
		key: func(s Send) string { return s.Mailbox },
		read: func(subject string, of address.Identity, to *Send) bool {
			mailbox, err := address.Parse(subject, of)
			to.Mailbox = mailbox.Key()
			return err == nil
		},
	},
	{
		by: ByClientIP, list: "networks", whose: "this visitor's address", subject: "an IPv4 or IPv6 address",
		key: func(s Send) string { return network.Visitor(s.Client) },
		read: func(subject string, _ address.Identity, to *Send) (ok bool) {
			client, err := netip.ParseAddr(subject)
			to.Client = client
			return err == nil && client.Zone() == ""
		},
	},
	{
		by: ByAPIKey, list: "api_keys", whose: "this caller", subject: "the name of an API key",
		key:  func(s Send) string { return s.Caller },
		read: func(subject string, _ address.Identity, to *Send) bool { to.Caller = subject; return true },
	},
	{
		by: ByDomain, list: "domains", whose: "this mailbox's domain", subject: "a domain, such as example.com",
		key: func(s Send) string { return address.DomainOf(s.Mailbox) },
		read: func(subject string, of address.Identity, to *Send) bool {
			mailbox, err := address.Parse("x@"+subject, of)
			to.Mailbox = mailbox.Key()
			return err == nil
		},
	},
	{
		by: ByPurpose, list: "purposes", whose: "this purpose", subject: "a purpose, such as sign-up",
		key: func(s Send) string { return s.Purpose },
		read: func(subject string, _ address.Identity, to *Send) bool {
			to.Purpose = subject
			return throttle.CheckName(subject) == nil
		},
	},
	{
		by: ByTemplate, list: "templates", whose: "this template", subject: "the name of a template",
		key:  func(s Send) string { return s.Template },
		read: func(subject string, _ address.Identity, to *Send) bool { to.Template = subject; return true },
	},
	{
		by: ByAll, whose: "this service",
		key: func(Send) string { return "all" },
	},
}

// Bys lists all traits, from those that few sends share to those that all share.
func Bys() []By {
	all := make([]By, len(traits))
	for i := range traits {
		all[i] = traits[i].by
	}
	return all
}

// List returns the key under which a file of rules names sends by the trait, empty if it does not.
func (b By) List() string { return b.trait().list }

func (b By) trait() *trait {
	for i := range traits {
		if traits[i].by == b {
			return &traits[i]
		}
	}
	return &trait{key: func(Send) string { return "" }}
}

// between is between the names of two traits, and pause between their keys and subjects, none of which has it.
const (
	between = "+"
	pause   = " "
)

// Pair returns two traits at once, in one order. They are not ok if they are one, or one is no trait of some
// sends alone.
func Pair(one, other By) (pair By, ok bool) {
	all := Bys()
	i, k := slices.Index(all, one), slices.Index(all, other)
	if i < 0 || k < 0 || i == k || max(i, k) == slices.Index(all, ByAll) {
		return "", false
	}
	return all[min(i, k)] + between + all[max(i, k)], true
}

// Traits returns what is counted by: one trait or two.
func (b By) Traits() []By {
	one, other, pair := strings.Cut(string(b), between)
	if !pair {
		return []By{b}
	}
	return []By{By(one), By(other)}
}

// Has reports whether the trait is what is counted by, or is one of two.
func (b By) Has(one By) bool { return b == one || slices.Contains(b.Traits(), one) }

// Key returns what the send is counted under, empty if that is unknown.
func (b By) Key(s Send) string {
	one, other, pair := strings.Cut(string(b), between)
	key := By(one).trait().key(s)
	if !pair || key == "" {
		return key
	}
	if second := By(other).trait().key(s); second != "" {
		return key + pause + second
	}
	return ""
}

// Whose names for people what a limit by the trait is of.
func (b By) Whose() string {
	return b.each(" and ", func(t *trait) string { return t.whose })
}

// Subject says how an operator writes what the trait counts by: "a domain, such as example.com". It is
// empty if there is nothing to write.
func (b By) Subject() string {
	return b.each(", a blank, and ", func(t *trait) string { return t.subject })
}

func (b By) each(join string, words func(*trait) string) string {
	one, other, pair := strings.Cut(string(b), between)
	text := words(By(one).trait())
	if pair {
		text += join + words(By(other).trait())
	}
	return text
}

// Read reads a subject as an operator writes it, into a send with nothing else. It is not ok if no send
// has such a one.
func (b By) Read(subject string, of address.Identity) (s Send, ok bool) {
	traits := b.Traits()
	parts := strings.Split(subject, pause)
	if len(parts) != len(traits) {
		return s, false
	}
	for i, one := range traits {
		if read := one.trait().read; read == nil || !read(parts[i], of, &s) {
			return s, false
		}
	}
	return s, true
}
