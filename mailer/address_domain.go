package mailer

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// RegisteredDomain is what somebody registered of a domain, by the public suffix list and in
// lower case: example.co.uk of mail.example.co.uk. Subdomains are to be had for nothing and
// in any number, so whoever counts by domain counts by this. A domain that nobody can have
// registered, such as co.uk, is left whole.
func RegisteredDomain(domain string) string {
	domain = strings.ToLower(domain)
	if registered, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return registered
	}
	return domain
}

// appendDomain adds the domain in lower-case ASCII, or says why it will not do.
// Plain ASCII domains, nearly all of them, never meet the IDNA tables.
func appendDomain(to []byte, domain string) ([]byte, Reason) {
	if domain == "" {
		return to, ReasonNoDomain
	}
	start, wide := len(to), false
	for i := 0; i < len(domain); i++ {
		switch c := domain[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-':
			to = append(to, c)
		case 'A' <= c && c <= 'Z':
			to = append(to, c+('a'-'A'))
		case c >= utf8.RuneSelf:
			wide = true
		case c == '_':
			return to, ReasonDomainUnderscore
		default:
			return to, ReasonDomainCharacter
		}
	}
	if wide {
		ascii, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			return to, ReasonDomainIDN
		}
		to = append(to[:start], ascii...)
	}
	encoded, reason := checkLabels(to[start:])
	if reason != "" || !encoded || roundTrips(string(to[start:])) {
		return to, reason
	}
	if wide {
		return to, ReasonDomainIDN
	}
	return to, ReasonDomainPunycode
}

// checkLabels checks each label of an ASCII domain and tells whether any is
// punycode.
func checkLabels(domain []byte) (encoded bool, reason Reason) {
	if domain[len(domain)-1] == '.' {
		return false, ReasonDomainTrailing
	}
	labels, start := 0, 0
	numeric := false
	for start <= len(domain) {
		end := start
		for numeric = true; end < len(domain) && domain[end] != '.'; end++ {
			numeric = numeric && '0' <= domain[end] && domain[end] <= '9'
		}
		puny, reason := checkLabel(domain[start:end])
		if reason != "" {
			return false, reason
		}
		encoded = encoded || puny
		labels++
		start = end + 1
	}
	switch {
	case labels < 2:
		return false, ReasonDomainWithoutDot
	case numeric: // the last label's
		return false, ReasonDomainNumeric
	}
	return encoded, ""
}

func checkLabel(label []byte) (puny bool, reason Reason) {
	n := len(label)
	switch {
	case n == 0:
		return false, ReasonDomainDot
	case n > maxLabel:
		return false, ReasonDomainLabelLong
	case string(label[:min(n, 4)]) == "xn--":
		return true, ""
	case label[0] == '-' || label[n-1] == '-':
		return false, ReasonDomainHyphen
	case n >= 4 && label[2] == '-' && label[3] == '-':
		return false, ReasonDomainHyphen // RFC 5890, 2.3.1: reserved
	}
	return false, ""
}

// roundTrips reports whether every xn-- label of an ASCII domain decodes to a
// name that encodes to this very label. One that does not would give a domain
// two spellings, and so a mailbox two keys.
func roundTrips(domain string) bool {
	name, err := idna.Lookup.ToUnicode(domain)
	if err != nil {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		// The library counts octets where UTS 46 counts characters.
		if runes := []rune(label); len(runes) >= 4 && runes[2] == '-' && runes[3] == '-' {
			return false
		}
	}
	ascii, err := idna.Lookup.ToASCII(name)
	return err == nil && ascii == domain
}
