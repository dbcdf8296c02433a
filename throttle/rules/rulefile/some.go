package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// someText is some of the sends, as it is written.
type someText struct {
	Mailboxes []string `yaml:"mailboxes"`
	Networks  []string `yaml:"networks"`
	APIKeys   []string `yaml:"api_keys"`
	Templates []string `yaml:"templates"`
	Purposes  []string `yaml:"purposes"`
}

// read reads the part of a rule that has this name.
func (t someText) read(d Defaults, part string) (s rules.Some, err error) {
	if s.Mailboxes, err = readList(part+".mailboxes", t.Mailboxes, d.pattern, cmp.Compare); err != nil {
		return s, err
	}
	if s.Networks, err = readList(part+".networks", t.Networks, network.Parse, netip.Prefix.Compare); err != nil {
		return s, err
	}
	if s.Callers, err = readList(part+".api_keys", t.APIKeys, callerName, cmp.Compare); err != nil {
		return s, err
	}
	if s.Templates, err = readList(part+".templates", t.Templates, templateName, cmp.Compare); err != nil {
		return s, err
	}
	s.Purposes, err = readList(part+".purposes", t.Purposes, purposeName, cmp.Compare)
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
	slices.SortFunc(all, compare)
	return slices.Compact(all), nil
}

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
