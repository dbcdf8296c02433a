package address

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// appendDomain adds the domain in lower-case ASCII, or says why it is refused. Domains of
// plain ASCII, which are nearly all, do not need the IDNA tables.
func appendDomain(to []byte, domain string) ([]byte, Reason) {
	if domain == "" {
		return to, "no-domain"
	}
	start, wide := len(to), false
	for i := range len(domain) {
		switch c := domain[i]; {
		case 'A' <= c && c <= 'Z':
			to = append(to, c+('a'-'A'))
		case isLetterOrDigit(c) || c == '.' || c == '-':
			to = append(to, c)
		case c >= utf8.RuneSelf:
			wide = true
		case c == '_':
			return to, "domain-underscore"
		default:
			return to, "domain-character"
		}
	}
	if wide {
		ascii, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			return to, "domain-idn"
		}
		to = append(to[:start], ascii...)
	}
	punycode, reason := checkLabels(to[start:])
	if reason != "" || !punycode || roundTrips(string(to[start:])) {
		return to, reason
	}
	if wide {
		return to, "domain-idn"
	}
	return to, "domain-punycode"
}

// checkLabels checks each label of an ASCII domain and reports whether any is punycode.
func checkLabels(domain []byte) (punycode bool, reason Reason) {
	if domain[len(domain)-1] == '.' {
		return false, "domain-trailing-dot"
	}
	var last []byte
	for label := range bytes.SplitSeq(domain, []byte{'.'}) {
		n := len(label)
		switch {
		case n == 0:
			return false, "domain-dot"
		case n > maxLabel:
			return false, "domain-label-too-long"
		case bytes.HasPrefix(label, []byte("xn--")):
			punycode = true
		case label[0] == '-' || label[n-1] == '-',
			n >= 4 && label[2] == '-' && label[3] == '-': // reserved by RFC 5890, 2.3.1
			return false, "domain-hyphen"
		}
		last = label
	}
	switch {
	case len(last) == len(domain):
		return false, "domain-without-dot"
	case len(bytes.Trim(last, "0123456789")) == 0:
		return false, "domain-numeric"
	}
	return punycode, ""
}

// roundTrips reports whether every xn-- label of an ASCII domain decodes to a name that
// encodes to this very label. Another would give one mailbox two keys.
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
