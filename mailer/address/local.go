package address

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkText looks for what is refused anywhere in an address, length first. Of several
// faults it names the most telling one. Text that passes has exactly one @.
func checkText(text string) Reason {
	switch {
	case text == "":
		return "empty"
	case len(text) > maxAddress:
		return "too-long"
	case !utf8.ValidString(text):
		return "not-utf8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "control"
	case strings.ContainsFunc(text, isInvisible):
		return "invisible"
	case strings.ContainsAny(text, "<>"):
		return "display-name"
	case strings.Contains(text, `"`):
		return "quoted"
	case strings.ContainsAny(text, "()"):
		return "comment"
	case strings.ContainsAny(text, "[]"):
		return "literal"
	case strings.Contains(text, " "):
		return "space"
	}
	switch strings.Count(text, "@") {
	case 0:
		return "no-at"
	case 1:
		return ""
	}
	return "several-at"
}

// isInvisible reports whether r shows nothing: white space beyond ASCII, format
// characters (zero width, bidi, soft hyphen, tags), variation selectors, fillers and the
// blank Braille pattern. They make two addresses look alike, and IDNA drops some of them.
func isInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	return unicode.In(r, unicode.Z, unicode.Cf, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point) || r == '\u2800'
}

// atomMarks are the marks that RFC 5322 allows in an atom, and the dot, without the two
// that route.
const atomMarks = ".#$&'*+-/=?^_`{|}~"

// checkLocal checks the part before the @ against RFC 5321's Dot-string.
func checkLocal(local string) Reason {
	if local == "" {
		return "no-local"
	}
	if len(local) > maxLocal {
		return "local-too-long"
	}
	for i := range len(local) {
		switch c := local[i]; {
		case c >= utf8.RuneSelf:
			return "local-not-ascii"
		case c == '%' || c == '!':
			// Atoms by the grammar, but relays still read a%b@c as a@b and c!a as a@c:
			// one mailbox would have any number of keys.
			return "route"
		case !isLetterOrDigit(c) && strings.IndexByte(atomMarks, c) < 0:
			return "local-character"
		}
	}
	// =? starts an RFC 2047 encoded word, which some readers decode even in an address.
	// Folding may drop what is between the two.
	if equals := strings.IndexByte(local, '='); equals >= 0 && strings.Contains(local[equals:], "?") {
		return "encoded-word"
	}
	if local[0] == '.' || local[len(local)-1] == '.' || strings.Contains(local, "..") {
		return "local-dot"
	}
	return ""
}

func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
