package mailer

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// maxSubject bounds a subject, in characters.
const maxSubject = 200

// subjectProblem says why a rendered subject will not do, or nothing.
func subjectProblem(subject string) string {
	if subject == "" {
		return "is empty"
	}
	return plainTextProblem(subject, maxSubject)
}

// headerText is text as the value of an unstructured header: as it stands if it
// is printable ASCII, else as RFC 2047 encoded words. Text that looks like an
// encoded word is encoded too, or a reader would decode it.
func headerText(text string) string {
	if isPrintable(text) && !strings.Contains(text, "=?") {
		return text
	}
	return encodedWords(text)
}

// encodedWords writes text as RFC 2047 base64 words with a space between, none
// of them cutting a character in two, and short enough that the longest header
// name and one word fit into the 76 characters of a line.
func encodedWords(text string) string {
	const most = 36 // octets, which are 48 characters of base64
	var words strings.Builder
	for text != "" {
		end := min(most, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		if words.Len() > 0 {
			words.WriteByte(' ')
		}
		words.WriteString("=?UTF-8?B?")
		words.WriteString(base64.StdEncoding.EncodeToString([]byte(text[:end])))
		words.WriteString("?=")
		text = text[end:]
	}
	return words.String()
}

// isPrintable reports whether text is printable ASCII and spaces.
func isPrintable(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
