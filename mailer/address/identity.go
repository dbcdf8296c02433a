package address

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed providers.json
var providersJSON []byte

// Identity decides which addresses are one mailbox, that is, which Key an Address gets.
//
// The zero Identity folds nothing: the key is the address on the wire. That is right only
// where the recipients' servers tell Alice from alice and a+b from a; elsewhere one
// mailbox gets the quota of each of its spellings.
//
// NewIdentity(true) folds letter case, what follows a + in the local part, spellings of
// the domain, and what providers.json knows about a provider (dots that do not count,
// domains that are one). The table has only what a provider documents about the domains
// it names. Where a server does take + or letter case for part of a name, two of its
// mailboxes share one quota.
type Identity struct {
	fold       bool
	providers  map[string]*provider // by domain
	subdomains map[string]*provider // by parent domain
	logs       *[32]byte
}

// provider is one row of providers.json. Letter case and +tag need no row.
type provider struct {
	Domains   []string `json:"domains"`
	OneAs     string   `json:"one_as"`    // the name under which the domains are one
	Ignore    string   `json:"ignore"`    // characters of a local part that do not count
	Alike     string   `json:"alike"`     // characters that stand for each other; the first is kept
	Tag       string   `json:"tag"`       // a character beside + that starts a tag
	Subdomain bool     `json:"subdomain"` // tag@user.domain is user+tag@domain
	Why       string   `json:"why"`       // where the provider says so
}

// NewIdentity returns the folding Identity, or the one that folds nothing. It fails only
// if the built-in provider table is broken.
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
		return Identity{}, fmt.Errorf("reading the provider table: %w", err)
	}
	id := Identity{fold: true, providers: map[string]*provider{}, subdomains: map[string]*provider{}}
	for _, row := range rows {
		if len(row.Domains) == 0 || row.Why == "" || len(row.Tag) > 1 {
			return Identity{}, fmt.Errorf("the provider row for %q needs domains, a reason and a tag of one character at most", row.Domains)
		}
		for _, domain := range row.Domains {
			if id.providers[domain] != nil {
				return Identity{}, fmt.Errorf("two provider rows for %q", domain)
			}
			id.providers[domain] = row
			if row.Subdomain {
				id.subdomains[domain] = row
			}
		}
	}
	return id, nil
}

// address makes the Address of a checked wire form whose @ is at at. Wire and key share
// one string.
func (id Identity) address(wire []byte, at int) Address {
	n := len(wire)
	if id.fold {
		wire = id.appendKey(wire, wire[:at], wire[at+1:])
	}
	if n == len(wire) || bytes.Equal(wire[:n], wire[n:]) {
		text := string(wire[:n])
		return Address{wire: text, key: text, logs: id.logs}
	}
	text := string(wire)
	return Address{wire: text[:n], key: text[n:], logs: id.logs}
}

// appendKey adds the folded form of local@domain.
func (id Identity) appendKey(to, local, domain []byte) []byte {
	row := id.providers[string(domain)]
	if row == nil {
		user, parent, _ := bytes.Cut(domain, []byte{'.'})
		if row = id.subdomains[string(parent)]; row != nil {
			local, domain = user, parent
		}
	}
	if row == nil {
		row = &provider{}
	}
	to = append(row.appendLocal(to, local), '@')
	if row.OneAs != "" {
		return append(to, row.OneAs...)
	}
	return append(to, domain...)
}

// appendLocal adds the folded local part. A local part of nothing but what would be
// dropped stays as it is.
func (p *provider) appendLocal(to, local []byte) []byte {
	local = cutTag(local, '+')
	if p.Tag != "" {
		local = cutTag(local, p.Tag[0])
	}
	start := len(to)
	for _, c := range local {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case strings.IndexByte(p.Ignore, c) >= 0:
			continue
		case strings.IndexByte(p.Alike, c) >= 0:
			c = p.Alike[0]
		}
		to = append(to, c)
	}
	if len(to) == start {
		to = append(to, local...)
	}
	return to
}

// cutTag drops the tag and its separator. A separator in first place starts no tag. Dots
// that end up last are dropped too, so that the key stays an address.
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
