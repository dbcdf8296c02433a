package mailer

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed providers.json
var providersJSON []byte

// Identity decides which addresses are one mailbox, that is, what an Address
// has for its Key.
//
// The zero Identity folds nothing: a key is the address on the wire, and every
// spelling counts by itself. That is for operators who know that their
// recipients' servers tell Alice from alice and a+b from a; anywhere else it
// lets one mailbox be mailed as often as its name can be spelled.
//
// NewIdentity(true) folds: letter case, whatever follows a + in the local part,
// the domain's own spellings, and what providers.json knows about a provider
// (dots that do not count, domains that are one). That table holds only what a
// provider says of the domains it names: a provider's other domains, and
// aliases that only the owner or operator of a mailbox knows of, count apart.
// Where a server does take + or letter case for part of a name, two of its
// mailboxes share one allowance.
type Identity struct {
	fold       bool
	providers  map[string]*provider // by domain
	subdomains map[string]*provider // by parent domain
	logs       *logKey
}

// provider is one row of providers.json: what a mail provider documents about
// addresses that reach one mailbox. Letter case and +tag hold everywhere and
// need no row.
type provider struct {
	// Domains are the domains the row is about.
	Domains []string `json:"domains"`
	// OneAs, if set, says that the domains are one, and under which name.
	OneAs string `json:"one_as"`
	// Ignore lists the characters of a local part that do not count.
	Ignore string `json:"ignore"`
	// Alike lists characters that stand for each other; the first is kept.
	Alike string `json:"alike"`
	// Tag is a character besides + that starts a tag.
	Tag string `json:"tag"`
	// Subdomain says that tag@user.domain is user+tag@domain.
	Subdomain bool `json:"subdomain"`
	// Why is where the provider says so.
	Why string `json:"why"`
}

// NewIdentity gives the folding Identity, or the one that folds nothing. It
// fails only if the built-in provider rules are broken.
func NewIdentity(fold bool) (Identity, error) {
	if !fold {
		return Identity{}, nil
	}
	return parseProviders(providersJSON)
}

func parseProviders(text []byte) (Identity, error) {
	var rows []*provider
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rows); err != nil {
		return Identity{}, fmt.Errorf("mailer: reading the provider rules: %w", err)
	}
	id := Identity{fold: true, providers: map[string]*provider{}, subdomains: map[string]*provider{}}
	for _, row := range rows {
		if len(row.Domains) == 0 || row.Why == "" || len(row.Tag) > 1 {
			return Identity{}, fmt.Errorf("mailer: the provider rule for %q needs domains, a reason and a tag of one character at most", row.Domains)
		}
		for _, domain := range row.Domains {
			if id.providers[domain] != nil {
				return Identity{}, fmt.Errorf("mailer: two provider rules for %q", domain)
			}
			id.providers[domain] = row
			if row.Subdomain {
				id.subdomains[domain] = row
			}
		}
	}
	return id, nil
}

// address makes the Address of a checked wire form whose @ stands at at. Wire
// and key lie in one string, so that it costs one allocation.
func (id Identity) address(wire []byte, at int) Address {
	n := len(wire)
	if id.fold {
		wire = id.appendKey(wire, wire[:at], wire[at+1:])
	}
	if n == len(wire) || string(wire[:n]) == string(wire[n:]) {
		text := string(wire[:n])
		return Address{wire: text, key: text, logs: id.logs}
	}
	text := string(wire)
	return Address{wire: text[:n], key: text[n:], logs: id.logs}
}

// appendKey adds the folded form of local@domain.
func (id Identity) appendKey(to, local, domain []byte) []byte {
	rule := id.providers[string(domain)]
	if rule == nil {
		user, parent, _ := bytes.Cut(domain, []byte{'.'})
		if rule = id.subdomains[string(parent)]; rule != nil {
			local, domain = user, parent
		}
	}
	to = rule.appendLocal(to, local)
	to = append(to, '@')
	if rule != nil && rule.OneAs != "" {
		return append(to, rule.OneAs...)
	}
	return append(to, domain...)
}

// appendLocal adds the folded local part. No step may leave nothing: a name
// made of nothing but what would be dropped stays as it is. A nil provider has
// the rules that hold everywhere.
func (p *provider) appendLocal(to, local []byte) []byte {
	local = cutTag(local, '+')
	ignore, alike := "", ""
	if p != nil {
		ignore, alike = p.Ignore, p.Alike
		if p.Tag != "" {
			local = cutTag(local, p.Tag[0])
		}
	}
	start := len(to)
	for _, c := range local {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case ignore != "" && strings.IndexByte(ignore, c) >= 0:
			continue
		case alike != "" && strings.IndexByte(alike, c) >= 0:
			c = alike[0]
		}
		to = append(to, c)
	}
	if len(to) == start {
		to = append(to, local...)
	}
	return to
}

// cutTag drops the tag and its separator. A separator in first place starts no
// tag, since no name is left of it; dots that end up last go, so that the key
// stays an address.
func cutTag(local []byte, separator byte) []byte {
	i := bytes.IndexByte(local[1:], separator)
	if i < 0 {
		return local
	}
	local = local[:i+1]
	for len(local) > 1 && local[len(local)-1] == '.' {
		local = local[:len(local)-1]
	}
	return local
}
