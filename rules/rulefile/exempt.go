package rulefile

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/network"
	"github.com/mailgate/mailgate/rules"
	"github.com/mailgate/mailgate/strictyaml"
)

// readExempt reads which sends the rule leaves alone.
func readExempt(p parts, d Defaults) (e rules.Exempt, err error) {
	v, ok := p.byName["exempt"]
	if !ok {
		return e, nil
	}
	lists, err := readParts(v, "exempt", "mailboxes", "networks", "api_keys")
	if err != nil {
		return e, err
	}
	if e.Mailboxes, err = exempted(lists, "mailboxes", d.mailboxes, strings.Compare); err != nil {
		return e, err
	}
	if e.Networks, err = exempted(lists, "networks", network.Parse, netip.Prefix.Compare); err != nil {
		return e, err
	}
	e.Callers, err = exempted(lists, "api_keys", caller, strings.Compare)
	return e, err
}

// exempted reads one list of exempt, and puts it in one order and each entry in it once:
// so lists that mean the same are the same. Errors say which line is wrong, not what is
// on it.
func exempted[T comparable](p parts, name string, read func(string) (T, error), compare func(a, b T) int) (all []T, err error) {
	part := p.at(name).Place.Part
	err = p.each(name, "", maxExempt, func(v strictyaml.Value) error {
		v = v.Named(part)
		text, err := v.Text()
		if err != nil {
			return err
		}
		one, err := read(text)
		if err != nil {
			return v.Refuse(err.Error())
		}
		all = append(all, one)
		return nil
	})
	slices.SortFunc(all, compare)
	return slices.Compact(all), err
}

// caller is the name of an api key, or what can be one.
func caller(text string) (string, error) {
	if text == "" || strings.ContainsFunc(text, notInCaller) {
		return "", errors.New("it must be the name of an API key, which stands before its colon")
	}
	return text, nil
}

func notInCaller(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	return !letter && !strings.ContainsRune("0123456789._-", c)
}

// mailboxes is the pattern by which mailboxes are known, of one as people write it: an
// address, one with * in the part before the @, or a domain with the @ before it.
func (d Defaults) mailboxes(text string) (string, error) {
	local, domain, ok := strings.Cut(text, "@")
	switch {
	case !ok || strings.Contains(domain, "@"):
		return "", errors.New("it must be an address, or one with *, or a domain with the @ before it")
	case strings.Contains(domain, "*"):
		return "", errors.New("only the part before the @ may have a *")
	case local == "":
		return d.pattern("*", domain, "")
	case strings.Contains(local, "*"):
		return d.pattern(local, domain, local)
	}
	return d.Mailbox(text)
}

// pattern finds what a local part with * in it matches, by following an address that it
// matches to its key. Where the key is no longer one that it matches, the pattern would
// never match anything.
func (d Defaults) pattern(local, domain, shown string) (string, error) {
	const star = "x"
	tried := strings.ReplaceAll(local, "*", star)
	key, err := d.Mailbox(tried + "@" + domain)
	if err != nil {
		return "", err
	}
	keyLocal, keyDomain, _ := strings.Cut(key, "@")
	if len(keyLocal) != len(tried) || !strings.EqualFold(keyLocal, tried) {
		return "", errors.New("no mailbox is counted under such a name: +tags, and dots that a provider ignores, are taken off; leave them out")
	}
	if isASCII(domain) && !strings.EqualFold(keyDomain, domain) {
		return "", errors.New("mailboxes of this domain are counted as those of " + keyDomain + "; write that")
	}
	if shown == "" {
		return "@" + keyDomain, nil
	}
	return respell(local, keyLocal, len(star)) + "@" + keyDomain, nil
}

// respell is the local part in the spelling of its key, in which so many characters
// stand for each *.
func respell(local, key string, star int) string {
	pieces := strings.Split(local, "*")
	for i, piece := range pieces {
		pieces[i], key = key[:len(piece)], key[min(len(piece)+star, len(key)):]
	}
	return strings.Join(pieces, "*")
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c > 0x7f })
}
