// Package proof proves that mailgate sent an email to an address: id, time, and a MAC of both and the address.
// Providers return it with a bounce, so that a bounce of anything else changes nothing and no record of sent
// emails is needed.
package proof

import (
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle"
)

const (
	purpose = "mailgate proof of an email, version 1"
	// Life is for how many milliseconds after its email a proof counts.
	Life = 90 * 24 * 60 * 60 * 1000
)

// Proofs makes proofs with the secret, and knows those of former secrets.
type Proofs struct {
	macs   []*secret.MAC
	fields []field
}

// field is one that a provider returns with a bounce. Recipients share it, unless it is for each.
type field struct {
	provider, name, before, after string
	each                          bool
}

var fields = []field{
	{provider: "ses", name: "X-Mailgate-Proof"},
	{provider: "resend", name: "X-Mailgate-Proof"},
	{provider: "sendgrid", name: "X-SMTPAPI", before: `{"unique_args":{"mailgate":"`, after: `"}}`},
	{provider: "mailgun", name: "X-Mailgun-Variables", before: `{"mailgate":"`, after: `"}`},
	{provider: "postmark", name: "X-PM-Metadata-mailgate", each: true},
	{provider: "brevo", name: "X-Mailin-custom", before: "mailgate:"},
}

// Has reports whether a header field, in any letter case, is one that proofs are in.
func Has(name string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return strings.EqualFold(f.name, name) })
}

// New returns the Proofs of a secret. Emails have the fields of these providers.
func New(providers []string, current []byte, former ...[]byte) (*Proofs, error) {
	p := &Proofs{}
	for _, one := range append([][]byte{current}, former...) {
		key, err := secret.Key(one, purpose)
		if err != nil {
			return nil, fmt.Errorf("making the key of proofs: %w", err)
		}
		p.macs = append(p.macs, secret.NewMAC(key))
	}
	names := map[string]bool{}
	for _, f := range fields {
		for _, provider := range providers {
			if f.provider == provider && !names[f.name] {
				p.fields, names[f.name] = append(p.fields, f), true
			}
		}
	}
	return p, nil
}

// Make returns the proof of an email to an address. It can be part of a Message-ID.
func (p *Proofs) Make(id throttle.ID, nowMS int64, to address.Address) string {
	return made(p.macs[0], id.String(), strconv.FormatInt(1<<44+nowMS, 16)[1:], to)
}

func made(by *secret.MAC, id, at string, to address.Address) string {
	mac := by.Sum(id, at, strings.ToLower(to.String())) // providers report addresses in lower case
	return id + "." + at + "." + hex.EncodeToString(mac[:])
}

var form = regexp.MustCompile(`([A-Za-z0-9_-]{8})\.([0-9a-f]{11})\.[0-9a-f]{32}`)

// Find looks in what a provider returned for the proof of an email to an address. It returns "" if there is
// none; other reports that there is one of another address or secret, or an expired one.
func (p *Proofs) Find(in string, to address.Address, nowMS int64) (proof string, other bool) {
	for _, found := range form.FindAllStringSubmatch(in, -1) {
		at, err := strconv.ParseInt(found[2], 16, 64)
		for _, one := range p.macs {
			if subtle.ConstantTimeCompare([]byte(found[0]), []byte(made(one, found[1], found[2], to))) == 1 && err == nil && nowMS-at < Life {
				return found[0], false
			}
		}
		other = true
	}
	return "", other
}

// mostEach is how many fields a provider returns that has one for each recipient.
const mostEach = 10

// Fields returns the header fields with proofs, each ended by CRLF, for the providers that are on.
func (p *Proofs) Fields(proofs []string) string {
	var all strings.Builder
	for _, f := range p.fields {
		if !f.each {
			// Recipients in lines of their own, as a line has at most 998 octets.
			all.WriteString(f.name + ": " + f.before + strings.Join(proofs, "\r\n ") + f.after + "\r\n")
			continue
		}
		for i, one := range proofs[:min(len(proofs), mostEach)] {
			name := f.name
			if i > 0 {
				name += "-" + strconv.Itoa(i)
			}
			all.WriteString(name + ": " + one + "\r\n")
		}
	}
	return all.String()
}

// Names returns the names of the fields, for texts that have them already.
func (p *Proofs) Names() (names []string) {
	for _, f := range p.fields {
		names = append(names, f.name)
	}
	return names
}
