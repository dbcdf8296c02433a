package mailer

import (
	"unicode"
	"unicode/utf8"
)

// checkText looks at the whole address: its length before anything else, then
// each character once, for what is refused wherever it stands. What it lets
// pass has exactly one @.
func checkText(text string) Reason {
	if text == "" {
		return ReasonEmpty
	}
	if len(text) > maxAddress {
		return ReasonTooLong
	}
	var seen marks
	for i := 0; i < len(text); i++ {
		seen.add(text[i])
	}
	if seen.wide {
		if reason := checkWide(text); reason != "" {
			return reason
		}
	}
	return seen.reason()
}

// marks remembers which telling characters an address has. The reason is
// chosen at the end, so that it is the most telling one and not the leftmost.
type marks struct {
	control, angle, quote, paren, bracket, space, wide bool
	ats                                                int
}

func (m *marks) add(c byte) {
	switch {
	case c == '@':
		m.ats++
	case c < ' ' || c == 0x7f:
		m.control = true
	case c >= utf8.RuneSelf:
		m.wide = true
	case c == '<' || c == '>':
		m.angle = true
	case c == '"':
		m.quote = true
	case c == '(' || c == ')':
		m.paren = true
	case c == '[' || c == ']':
		m.bracket = true
	case c == ' ':
		m.space = true
	}
}

func (m *marks) reason() Reason {
	switch {
	case m.control:
		return ReasonControl
	case m.angle:
		return ReasonDisplayName
	case m.quote:
		return ReasonQuoted
	case m.paren:
		return ReasonComment
	case m.bracket:
		return ReasonLiteral
	case m.space:
		return ReasonSpace
	case m.ats == 0:
		return ReasonNoAt
	case m.ats > 1:
		return ReasonSeveralAt
	}
	return ""
}

// checkWide looks at the characters beyond ASCII. An invisible one could make
// two addresses look alike, and IDNA drops some of them silently: they are
// refused before anything can.
func checkWide(text string) Reason {
	if !utf8.ValidString(text) {
		return ReasonNotUTF8
	}
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Cc, r):
			return ReasonControl
		case isInvisible(r):
			return ReasonInvisible
		}
	}
	return ""
}

// isInvisible reports whether r shows nothing: white space beyond ASCII's,
// format characters (zero width, bidi, soft hyphen, tags), variation selectors,
// fillers, and the blank Braille pattern.
func isInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	return unicode.In(r, unicode.Z, unicode.Cf, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point) || r == '\u2800'
}

// checkLocal checks the part before the @, in which checkText found nothing
// wrong, against RFC 5321's Dot-string.
func checkLocal(local string) Reason {
	if local == "" {
		return ReasonNoLocal
	}
	if len(local) > maxLocal {
		return ReasonLocalTooLong
	}
	dotted := local[0] == '.' || local[len(local)-1] == '.'
	equals, encoded := false, false
	for i := 0; i < len(local); i++ {
		switch c := local[i]; {
		case isLetterOrDigit(c):
		case c == '=':
			equals = true
		case c == '?':
			// The start of an RFC 2047 encoded word, =?, which some readers
			// decode even in an address; also with something between the two,
			// since folding might drop that.
			encoded = encoded || equals
		case c == '.':
			dotted = dotted || i > 0 && local[i-1] == '.'
		case c >= utf8.RuneSelf:
			return ReasonLocalNotASCII
		case c == '%' || c == '!':
			// Atoms by the grammar, but relays still read a%b@c as a@b and
			// c!a as a@c: one mailbox would have any number of keys.
			return ReasonRoute
		case !isAtomMark(c):
			return ReasonLocalCharacter
		}
	}
	switch {
	case encoded:
		return ReasonEncodedWord
	case dotted:
		return ReasonLocalDot
	}
	return ""
}

func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// isAtomMark reports whether c is one of the marks RFC 5322 allows in an atom,
// other than the two that route.
func isAtomMark(c byte) bool {
	switch c {
	case '#', '$', '&', '\'', '*', '+', '-', '/', '=', '?', '^', '_', '`', '{', '|', '}', '~':
		return true
	}
	return false
}
