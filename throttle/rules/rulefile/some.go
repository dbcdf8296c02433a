package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// someText is some of the sends, as it is written.
type someText struct {
	Mailboxes []string `yaml:"mailboxes"`
	Domains   []string `yaml:"domains"`
	Networks  []string `yaml:"networks"`
	APIKeys   []string `yaml:"api_keys"`
	Templates []string `yaml:"templates"`
	Purposes  []string `yaml:"purposes"`
}

// read reads a part of a rule, whose name in front of the lists' is before.
func (t someText) read(d words, before string) (s rules.Some, err error) {
	if s.Mailboxes, err = readList(before+"mailboxes", t.Mailboxes, d.pattern, cmp.Compare); err != nil {
		return s, err
	}
	if s.Domains, err = readList(before+"domains", t.Domains, d.domain, cmp.Compare); err != nil {
		return s, err
	}
	if s.Networks, err = readList(before+"networks", t.Networks, d.network, netip.Prefix.Compare); err != nil {
		return s, err
	}
	if s.Callers, err = readList(before+"api_keys", t.APIKeys, callerName, cmp.Compare); err != nil {
		return s, err
	}
	if s.Templates, err = readList(before+"templates", t.Templates, templateName, cmp.Compare); err != nil {
		return s, err
	}
	s.Purposes, err = readList(before+"purposes", t.Purposes, purposeName, cmp.Compare)
	return s, err
}

// readList sorts a list and drops what is in it twice, so that lists that mean the same are
// equal.
func readList[T comparable](name string, texts []string, read func(string) (T, error), compare func(a, b T) int) (all []T, err error) {
	for i, text := range texts {
		one, err := read(text)
		if err != nil {
			return nil, wrongIn(fmt.Sprintf("%s[%d]", name, i), err)
		}
		all = append(all, one)
	}
	return sorted(all, compare), nil
}

func sorted[T comparable](all []T, compare func(a, b T) int) []T {
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}

// words read the names of what some sends are of.
type words struct {
	pattern, domain func(text string) (string, error)
	network         func(text string) (netip.Prefix, error)
}

func (d Defaults) words() words { return words{d.pattern, d.domain, network.Parse} }

// domain returns a domain in the spelling of mailboxes' keys. One that is a whole public suffix has no owner.
func (d Defaults) domain(text string) (string, error) {
	key, err := d.Mailbox("x@" + strings.TrimSuffix(text, "."))
	if err != nil {
		return "", errors.New("it is not a domain, such as example.com")
	}
	domain, ok := strings.CutPrefix(key, "x@")
	switch {
	case !ok:
		return "", errors.New("a provider reads this domain as one mailbox; write its address")
	case address.PublicSuffix(domain):
		return "", errSuffix
	}
	return domain, nil
}

var errSuffix = errors.New("this is a whole public suffix, below which anybody registers domains")

// callerName returns the name of an API key.
func callerName(text string) (string, error) {
	if text == "" || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
		return "", errors.New("it must be the name of an API key, the part before its colon")
	}
	return text, nil
}

// purposeName returns a purpose, as sends have it.
func purposeName(text string) (string, error) { return text, throttle.CheckName(text) }

// templateName returns the name of a template.
func templateName(text string) (string, error) {
	if text == "" || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return "", errors.New("it must be the name of a template")
	}
	return text, nil
}

// pattern returns a mailbox pattern in the spelling of mailboxes' keys: an address, one
// with * in the part before the @, or a domain with the @ before it.
func (d Defaults) pattern(text string) (string, error) {
	local, domain, ok := strings.Cut(text, "@")
	switch {
	case !ok || strings.Contains(domain, "@"):
		return "", errors.New("it must be an address, or one with *, or a domain with the @ before it")
	case strings.Contains(domain, "*"):
		return "", errors.New("only the part before the @ may have a *")
	case local == "":
		key, err := d.patternKey("*", domain)
		return strings.TrimPrefix(key, "*"), err
	case strings.Contains(local, "*"):
		return d.patternKey(local, domain)
	}
	return d.Mailbox(text)
}

// patternKey returns the pattern in the spelling of the keys that it matches, by the key of an
// address that it matches. A key that the pattern does not match is an error, as the pattern
// would never match a mailbox.
func (d Defaults) patternKey(local, domain string) (string, error) {
	local = strings.ToLower(local)
	tried := strings.ReplaceAll(local, "*", "x")
	key, err := d.Mailbox(tried + "@" + domain)
	if err != nil {
		return "", err
	}
	keyLocal, keyDomain, _ := strings.Cut(key, "@")
	if keyLocal != tried {
		return "", errors.New("+tags, and dots that a provider ignores, are removed before mailboxes are counted; leave them out")
	}
	return local + "@" + keyDomain, nil
}
