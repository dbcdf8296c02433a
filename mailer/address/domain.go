package address

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// wireDomain returns the domain in lower-case ASCII, or says why it is refused.
func wireDomain(domain string) (string, Reason) {
	if domain == "" {
		return "", "no-domain"
	}
	wide := false
	for i := range len(domain) {
		switch c := domain[i]; {
		case c >= utf8.RuneSelf:
			wide = true
		case c == '_':
			return "", "domain-underscore"
		case !isLetterOrDigit(c) && c != '.' && c != '-':
			return "", "domain-character"
		}
	}
	ascii, notDecodable := strings.ToLower(domain), Reason("domain-punycode")
	if wide {
		var err error
		if ascii, err = idna.Lookup.ToASCII(domain); err != nil {
			return "", "domain-idn"
		}
		notDecodable = "domain-idn"
	}
	if reason := checkLabels(ascii); reason != "" {
		return "", reason
	}
	if strings.Contains("."+ascii, ".xn--") && !roundTrips(ascii) {
		return "", notDecodable
	}
	return ascii, ""
}

// checkLabels checks each label of an ASCII domain.
func checkLabels(domain string) Reason {
	if strings.HasSuffix(domain, ".") {
		return "domain-trailing-dot"
	}
	labels, last := 0, ""
	for label := range strings.SplitSeq(domain, ".") {
		labels, last = labels+1, label
		n := len(label)
		switch {
		case n == 0:
			return "domain-dot"
		case n > maxLabel:
			return "domain-label-too-long"
		case strings.HasPrefix(label, "xn--"):
		case label[0] == '-' || label[n-1] == '-',
			n >= 4 && label[2:4] == "--": // reserved by RFC 5890, 2.3.1
			return "domain-hyphen"
		}
	}
	switch {
	case labels == 1:
		return "domain-without-dot"
	case isNumber(last):
		return "domain-numeric"
	}
	return ""
}

// isNumber reports whether a label is a number, which many programs take for a part of an IPv4
// address, also in hexadecimal.
func isNumber(label string) bool {
	if digits, hex := strings.CutPrefix(label, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
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
