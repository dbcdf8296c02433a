package api

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A jsonReader reads the small objects that callers send: one object whose values are
// strings, or one more object of strings. It is strict where the usual readers are
// kind, because each kindness is a way around a check: a field given twice, a field in
// another letter case, a text that is not UTF-8. It needs no reflection, and its depth
// is that of the callers in this package.
//
// A complaint tells the place and never repeats a value.
type jsonReader struct {
	text []byte
	at   int
	// field is the object member being read, for complaints.
	field string
}

// A field is one member an object may have: a string, or an object of strings.
type field struct {
	name string
	text *text
	all  *map[string]string
}

// A text is a string field that may be left out, which is not the same as empty.
type text struct {
	value string
	given bool
}

// readObject reads a body that is one object with these fields, each at most once.
func readObject(body []byte, fields []field) error {
	r := jsonReader{text: body}
	if len(body) == 0 {
		return r.complain("the body is empty")
	}
	var seen uint64
	err := r.object(func(name string) error {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if i < 0 {
			r.field = "" // it has no name that may be repeated
			return r.unknown(name, fields)
		}
		r.field = fields[i].name
		if seen&(1<<i) != 0 {
			return r.complain("the field is there twice")
		}
		seen |= 1 << i
		return r.value(fields[i])
	})
	if err != nil {
		return err
	}
	r.field = ""
	r.space()
	if r.at < len(r.text) {
		return r.complain("there is more after the object")
	}
	return nil
}

// object reads an object, with one call of member after each name and colon.
func (r *jsonReader) object(member func(name string) error) error {
	if r.space(); !r.take('{') {
		return r.complain("an object is expected")
	}
	if r.space(); r.take('}') {
		return nil
	}
	for {
		r.space()
		if r.peek() != '"' {
			return r.complain("a field's name is expected")
		}
		name, err := r.str()
		if err != nil {
			return err
		}
		if r.space(); !r.take(':') {
			return r.complain("a colon is expected")
		}
		r.space()
		if err := member(name); err != nil {
			return err
		}
		if r.space(); r.take('}') {
			return nil
		}
		if !r.take(',') {
			return r.complain("a comma or the object's end is expected")
		}
	}
}

// str reads a string. It shares no memory with the body.
func (r *jsonReader) str() (string, error) {
	if !r.take('"') {
		if r.peek() == 'n' {
			return "", r.complain("a string is expected; what is null is to be left out")
		}
		return "", r.complain("a string is expected")
	}
	start := r.at
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == '"':
			text := string(r.text[start:r.at])
			r.at++
			return text, nil
		case c == '\\' || c >= utf8.RuneSelf:
			return r.longStr(append([]byte(nil), r.text[start:r.at]...))
		case c < ' ':
			return "", r.complain("a control character has to be escaped")
		}
		r.at++
	}
	return "", r.complain("a string has no end")
}

// longStr reads the rest of a string that is not all plain ASCII.
func (r *jsonReader) longStr(text []byte) (string, error) {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return string(text), nil
		case c == '\\':
			char, err := r.escape()
			if err != nil {
				return "", err
			}
			text = utf8.AppendRune(text, char)
		case c < ' ':
			return "", r.complain("a control character has to be escaped")
		default:
			char, n := utf8.DecodeRune(r.text[r.at:])
			if char == utf8.RuneError && n == 1 {
				return "", r.complain("the text is not UTF-8")
			}
			text = append(text, r.text[r.at:r.at+n]...)
			r.at += n
		}
	}
	return "", r.complain("a string has no end")
}

// escape reads what begins with a backslash.
func (r *jsonReader) escape() (rune, error) {
	if r.at+1 >= len(r.text) {
		return 0, r.complain("a string has no end")
	}
	c := r.text[r.at+1]
	if c == 'u' {
		return r.escapedRune()
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 {
		return 0, r.complain("an escape is unknown")
	}
	r.at += 2
	return rune("\"\\/\b\f\n\r\t"[i]), nil
}

// escapedRune reads \uXXXX, or two of them that are one character.
func (r *jsonReader) escapedRune() (rune, error) {
	first, ok := r.unit(r.at)
	if !ok {
		return 0, r.complain("an escape needs four hexadecimal digits")
	}
	if first == 0 {
		return 0, r.complain("a NUL cannot be in a text")
	}
	if !utf16.IsSurrogate(first) {
		r.at += 6
		return first, nil
	}
	second, _ := r.unit(r.at + 6)
	char := utf16.DecodeRune(first, second)
	if char == utf8.RuneError {
		return 0, r.complain("an escape is half of a character")
	}
	r.at += 12
	return char, nil
}

// unit reads the \uXXXX at a place.
func (r *jsonReader) unit(at int) (rune, bool) {
	if at+6 > len(r.text) || r.text[at] != '\\' || r.text[at+1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range r.text[at+2 : at+6] {
		digit := hexDigit(c)
		if digit < 0 {
			return 0, false
		}
		unit = unit<<4 | rune(digit)
	}
	return unit, true
}

func (r *jsonReader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return
		}
	}
}

func (r *jsonReader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *jsonReader) take(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// unknown complains about a field. Its name is repeated only where it was meant to be
// one of ours, since anything else might be a value in the wrong place.
func (r *jsonReader) unknown(name string, fields []field) error {
	for _, f := range fields {
		if strings.EqualFold(unbroken(f.name), unbroken(name)) {
			return r.complain("a field is unknown: is " + f.name + " meant? It has to be spelt so")
		}
	}
	return r.complain("a field is unknown")
}

// unbroken is a name as it is in any style, but for letter case.
func unbroken(name string) string { return strings.NewReplacer("_", "", "-", "").Replace(name) }

func (r *jsonReader) complain(what string) error {
	place := " (byte " + strconv.Itoa(r.at) + ")"
	if r.field != "" {
		place = " (field " + r.field + ", byte " + strconv.Itoa(r.at) + ")"
	}
	return &problem{kind: badRequest, detail: "The JSON will not do: " + what + place + "."}
}

// value reads a field's value into its place.
func (r *jsonReader) value(f field) (err error) {
	if f.text != nil {
		f.text.given = true
		f.text.value, err = r.str()
		return err
	}
	all := map[string]string{}
	*f.all = all
	return r.object(func(name string) (err error) {
		if _, twice := all[name]; twice {
			return r.complain("a name is there twice")
		}
		all[name], err = r.str()
		return err
	})
}
