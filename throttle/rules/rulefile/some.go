package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/yamlfile"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// someText is some of the sends, as it is written.
type someText struct {
	Mailboxes []yamlfile.Value `yaml:"mailboxes"`
	Domains   []yamlfile.Value `yaml:"domains"`
	Networks  []yamlfile.Value `yaml:"networks"`
	APIKeys   []yamlfile.Value `yaml:"api_keys"`
	Templates []yamlfile.Value `yaml:"templates"`
	Purposes  []yamlfile.Value `yaml:"purposes"`
}

// read reads a part of a rule, whose name in front of the lists' is before.
func (t someText) read(name naming, before string) (s rules.Some, err error) {
	s = rules.Some{}
	for _, list := range []struct {
		by    rules.By
		names []yamlfile.Value
	}{
		{rules.ByMailbox, t.Mailboxes}, {rules.ByDomain, t.Domains}, {rules.ByClientIP, t.Networks},
		{rules.ByAPIKey, t.APIKeys}, {rules.ByTemplate, t.Templates}, {rules.ByPurpose, t.Purposes},
	} {
		for i, one := range list.names {
			text, err := name(list.by, one.Text)
			if err != nil {
				return nil, wrongIn(fmt.Sprintf("%s%s[%d]", before, list.by.List(), i), err)
			}
			s[list.by] = append(s[list.by], rules.Name{Text: text, Line: int32(one.Line)})
		}
	}
	tidy(s)
	return s, nil
}

// tidy sorts the names and drops what is there twice, so that lists that mean the same are equal.
func tidy(s rules.Some) {
	for by, names := range s {
		slices.SortStableFunc(names, func(a, b rules.Name) int { return cmp.Compare(a.Text, b.Text) })
		s[by] = slices.Clone(slices.CompactFunc(names, func(a, b rules.Name) bool { return a.Text == b.Text })) // without room for more
	}
}

// naming reads the name of some sends in its one spelling.
type naming func(by rules.By, text string) (string, error)

// name is the naming of all but denials.
func (d Defaults) name(by rules.By, text string) (string, error) {
	const lower = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	switch by {
	case rules.ByMailbox:
		return d.pattern(text)
	case rules.ByDomain:
		return d.domain(text)
	case rules.ByClientIP:
		p, err := network.Parse(text)
		return p.String(), err
	case rules.ByAPIKey:
		if text == "" || strings.Trim(text, lower+"ABCDEFGHIJKLMNOPQRSTUVWXYZ.") != "" {
			return "", errors.New("it must be the name of an API key, the part before its colon")
		}
	case rules.ByTemplate:
		if text == "" || strings.Trim(text, lower) != "" {
			return "", errors.New("it must be the name of a template")
		}
	default:
		return text, throttle.CheckName(text)
	}
	return text, nil
}

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

var errSuffix = errors.New("this is a whole public suffix, below which others register domains")

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
