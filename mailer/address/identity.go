package address

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mailgate/mailgate/internal/secret"
)

//go:embed providers.json
var providersJSON []byte

// Identity decides which addresses are one mailbox, that is, which Key an Address gets.
//
// The zero Identity folds nothing: the key is the address on the wire. That is right only
// where the recipients' servers tell Alice from alice and a+b from a; elsewhere one
// mailbox gets the quota of each of its spellings.
//
// NewIdentity(true) folds letter case, what follows a + in the local part, and spellings of
// the domain. For a provider in providers.json it also folds dots that do not count, and
// domains that are one. The table has only what a provider documents about the domains
// it names. Where a server does take + or letter case for part of a name, two of its
// mailboxes share one quota.
type Identity struct {
	providers map[string]*provider // by domain; nil: nothing is folded
	logs      *secret.MAC
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
	var rows []*provider
	if err := json.Unmarshal(providersJSON, &rows); err != nil {
		return Identity{}, fmt.Errorf("reading the provider table: %w", err)
	}
	id := Identity{providers: map[string]*provider{}}
	for _, row := range rows {
		for _, domain := range row.Domains {
			id.providers[domain] = row
		}
	}
	return id, nil
}

// mailbox returns the folded form of local@domain.
func (id Identity) mailbox(local, domain string) string {
	row := id.providers[domain]
	if row == nil {
		row = &unlisted
		user, parent, _ := strings.Cut(domain, ".")
		if above := id.providers[parent]; above != nil && above.Subdomain {
			row, local, domain = above, user, parent
		}
	}
	return row.fold(local) + "@" + cmp.Or(row.OneAs, domain)
}

// unlisted is the row of a provider that the table has not.
var unlisted provider

// fold folds a local part. If nothing would be left of it, it is kept.
func (p *provider) fold(local string) string {
	local = cutTag(strings.ToLower(local), "+")
	if p.Tag != "" {
		local = cutTag(local, p.Tag)
	}
	folded := strings.Map(func(c rune) rune {
		switch {
		case strings.ContainsRune(p.Ignore, c):
			return -1
		case strings.ContainsRune(p.Alike, c):
			return rune(p.Alike[0])
		}
		return c
	}, local)
	return cmp.Or(folded, local)
}

// cutTag drops the tag and its separator. A separator as the first character starts no tag. Dots
// that end up last are dropped too, so that the key stays an address.
func cutTag(local, separator string) string {
	i := strings.Index(local[1:], separator)
	if i < 0 {
		return local
	}
	return local[:1] + strings.TrimRight(local[1:i+1], ".")
}
