package rulefile

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/throttle/rules"
)

func (t exemptText) read(d Defaults) (e rules.Exempt, err error) {
	if e.Mailboxes, err = readList("mailboxes", t.Mailboxes, d.pattern, cmp.Compare); err != nil {
		return e, err
	}
	if e.Networks, err = readList("networks", t.Networks, network.Parse, netip.Prefix.Compare); err != nil {
		return e, err
	}
	e.Callers, err = readList("api_keys", t.APIKeys, callerName, cmp.Compare)
	return e, err
}

// readList sorts a list and drops what is in it twice, so that lists that mean the same are
// equal.
func readList[T comparable](name string, texts []string, read func(string) (T, error), compare func(a, b T) int) (all []T, err error) {
	for i, text := range texts {
		one, err := read(text)
		if err != nil {
			return nil, wrongIn(fmt.Sprintf("exempt.%s[%d]", name, i), err)
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

// pattern returns an exemption by mailbox in the spelling of mailboxes' keys: an address, one
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
