// Package address parses email addresses and decides which of them are one mailbox.
//
// Parse makes an Address or refuses the text with a Reason. An Address has two forms of
// one text: String goes into RCPT TO, and limits count by Key, so no mailbox gets mail on
// the quota of another. An Identity decides which spellings are one mailbox: by letter case,
// +tag, and what providers document about their addresses, kept as data in providers.json.
package address

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"

	"github.com/mailgate/mailgate/internal/secret"
	"golang.org/x/net/publicsuffix"
)

// The lengths that RFC 5321 allows (4.5.3.1): 64 octets before the @, and a path of 256
// with its brackets, which leaves 254 for the address.
const (
	maxAddress = 254
	maxLocal   = 64
	maxLabel   = 63
)

// Address is one address of a mailbox. Only Parse makes one; the zero Address is no address.
//
// Printed or logged, an Address shows its Hash. The address itself is only in String
// and Key.
type Address struct {
	wire string
	key  string
	hash string // empty without a log key
}

// Parse reads one address without a display name. It refuses whatever a server could
// read in two ways or pass on to another mailbox than it seems to name. The error is a
// Reason, which never repeats the text. Text of more than 254 octets is refused unread.
func Parse(text string, identity Identity) (Address, error) {
	if reason := checkText(text); reason != "" {
		return Address{}, reason
	}
	local, domain, _ := strings.Cut(text, "@")
	if reason := checkLocal(local); reason != "" {
		return Address{}, reason
	}
	domain, reason := wireDomain(domain)
	wire := local + "@" + domain // a copy: HTTP servers reuse the memory of text
	if reason == "" && len(wire) > maxAddress {
		reason = "too-long"
	}
	if reason != "" {
		return Address{}, reason
	}
	a := Address{wire: wire, key: wire}
	if identity.providers != nil {
		a.key = identity.mailbox(local, domain)
	}
	if identity.logs != nil {
		a.hash = identity.logs.Name(a.key)
	}
	return a, nil
}

// String returns the address for RCPT TO: the local part as typed, the domain in lower-case
// ASCII.
func (a Address) String() string { return a.wire }

// Masked returns the first letter of a local part that has more, and the domain: a•••@example.com.
func (a Address) Masked() string {
	local, domain, _ := strings.Cut(a.wire, "@")
	first := ""
	if len(local) > 1 {
		first = local[:1]
	}
	return first + "•••@" + domain
}

// Key names the mailbox. Two addresses have equal keys exactly if they reach one mailbox
// by the rules of the Identity they were parsed with. A key is an address too, whose key is
// itself.
func (a Address) Key() string { return a.key }

// IsZero reports whether a is the zero Address.
func (a Address) IsZero() bool { return a.wire == "" }

// Domain is DomainOf the key.
func (a Address) Domain() string { return DomainOf(a.key) }

// DomainOf returns what the domain of a mailbox's key is registered as in the public suffix list:
// example.co.uk for mail.example.co.uk. Subdomains cost nothing, so limits count by this. A
// domain that cannot be registered, such as co.uk, stays whole.
func DomainOf(key string) string {
	domain := key[strings.LastIndexByte(key, '@')+1:]
	if registered, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return registered
	}
	return domain
}

// PublicSuffix reports whether a domain of a key is one below which others register theirs, such as co.uk or
// github.io.
func PublicSuffix(domain string) bool {
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return suffix == domain
}

// unnamed is the Hash without a log key. A hash without a key would be as bad as the
// address, since lists of addresses are for sale.
const unnamed = "unnamed"

// WithLogKey returns the Identity whose addresses have a Hash made with this key.
func (id Identity) WithLogKey(key [32]byte) Identity {
	id.logs = secret.NewMAC(key[:])
	return id
}

// Hash names the mailbox in logs: ten hexadecimal digits, equal for all spellings,
// which cannot be computed or undone without the log key. Without a log key it is
// "unnamed".
func (a Address) Hash() string {
	return cmp.Or(a.hash, unnamed)
}

// LogValue makes slog show the hash.
func (a Address) LogValue() slog.Value { return slog.StringValue(a.Hash()) }

// Format makes fmt show the hash for every verb, also of an Address in a struct.
func (a Address) Format(state fmt.State, _ rune) {
	_, _ = state.Write([]byte(a.Hash())) // a write to fmt's own buffer cannot fail
}
