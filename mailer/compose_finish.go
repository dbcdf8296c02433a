package mailer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxLine is the limit of RFC 5321 and 5322 for a line of mail, without its CRLF.
const maxLine = 998

// maxEncodedLine is RFC 2047's limit for a line with an encoded word in it.
const maxEncodedLine = 76

// header is one line of a header block.
type header struct{ name, value string }

// finish puts our header block in the place of the library's, which has them in
// random order, gives the parts our boundary instead of the library's, and
// checks every octet of the result.
func finish(composed []byte, block []header, boundary string) ([]byte, error) {
	head, body, ok := bytes.Cut(composed, []byte("\r\n\r\n"))
	if !ok {
		return nil, errors.New("no end of the header block")
	}
	_, old, ok := bytes.Cut(head, []byte("\r\n boundary="))
	if !ok || len(old) < len(boundary) {
		return nil, errors.New("no boundary")
	}
	out := make([]byte, 0, len(composed)+256)
	var err error
	for _, h := range block {
		if out, err = appendHeader(out, h); err != nil {
			return nil, err
		}
	}
	out = append(out, "Content-Type: multipart/alternative;\r\n boundary="...)
	out = append(out, boundary...)
	out = append(out, "\r\n\r\n"...)
	start := len(out)
	out = append(out, body...)
	if err := replaceBoundary(out[start:], old[:len(boundary)], boundary); err != nil {
		return nil, err
	}
	return out, checkOctets(out)
}

// appendHeader adds one header. Its value must be printable ASCII and not
// empty, so that it can end neither its line nor the block. A new line is
// started before each encoded word but the first, and before an address for which
// there is no room behind the last, since RFC 2047 wants lines of at most 76
// characters where there are any.
func appendHeader(to []byte, h header) ([]byte, error) {
	if h.value == "" || !isPrintable(h.value) {
		return nil, fmt.Errorf("the %s header has a value that may not be there", h.name)
	}
	line := len(to)
	to = append(to, h.name...)
	to = append(to, ": "...)
	for i := 0; i < len(h.value); i++ {
		if h.value[i] == ' ' && folds(h.value, i, len(to)-line) {
			to = append(to, "\r\n"...)
			line = len(to)
		}
		to = append(to, h.value[i])
	}
	return append(to, "\r\n"...), nil
}

// folds says whether a new line is started at a space of a header's value, where
// so much is on the line.
func folds(value string, space, used int) bool {
	if space < 2 || value[space-2:space] != "?=" {
		return false
	}
	next := value[space+1:]
	return strings.HasPrefix(next, "=?") || strings.HasPrefix(next, "<") && used+1+len(next) > maxEncodedLine
}

// replaceBoundary overwrites the library's boundary with one of the same
// length. It must occur thrice: before each of two parts, and at the end.
func replaceBoundary(body, old []byte, boundary string) error {
	count := 0
	for rest := body; ; count++ {
		i := bytes.Index(rest, old)
		if i < 0 {
			break
		}
		copy(rest[i:], boundary)
		rest = rest[i+len(old):]
	}
	if count != 3 {
		return fmt.Errorf("the boundary occurs %d times in the body", count)
	}
	return nil
}

// checkOctets checks what every mail must be: lines of at most 998 octets, each
// ended by CRLF, of printable ASCII and tabs.
func checkOctets(text []byte) error {
	for line := 1; len(text) > 0; line++ {
		end := bytes.IndexByte(text, '\n')
		if end < 1 || text[end-1] != '\r' {
			return fmt.Errorf("line %d does not end in CRLF", line)
		}
		if end-1 > maxLine {
			return fmt.Errorf("line %d is too long", line)
		}
		for _, c := range text[:end-1] {
			if c-' ' > '~'-' ' && c != '\t' { // what is below the space wraps around
				return fmt.Errorf("line %d contains an octet that may not be there", line)
			}
		}
		text = text[end+1:]
	}
	return nil
}
