package api

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/similar"
	"github.com/mailgate/mailgate/mailer/address"
)

const jsonType = "application/json"

// readObject reads a body that is one JSON object into a struct. An error names the position and
// never repeats a value.
func readObject(body []byte, into any, reading json.Options) error {
	err := json.Unmarshal(body, into, reading)
	if text := bytes.TrimLeft(body, " \t\r\n"); err == nil && text[0] != '{' { // null
		err = notObject
	}
	if err != nil {
		return &problem{kind: badRequest, detail: complaint(err, len(body) == 0, fieldNames(into))}
	}
	return nil
}

// checkEncoding refuses a body that is not plain by its header, even if it is empty. A
// compressed one could exceed its limit once it is opened.
func checkEncoding(c *fiber.Ctx) error {
	if len(c.Request().Header.PeekAll("Content-Encoding")) > 0 {
		return &problem{kind: badRequest, detail: "The body must not be encoded: remove Content-Encoding."}
	}
	return nil
}

func isJSON(contentType []byte) bool {
	if bytes.Equal(contentType, []byte(jsonType)) {
		return true
	}
	name, parameter, has := strings.Cut(strings.ToLower(string(contentType)), ";")
	if strings.TrimSpace(name) != jsonType {
		return false
	}
	charset, ok := strings.CutPrefix(strings.TrimSpace(parameter), "charset=")
	return !has || ok && strings.Trim(charset, `"`) == "utf-8"
}

// strict returns the options of a reader that refuses ambiguous JSON: repeated names, unknown names, names in another
// case, text that is not UTF-8, and null instead of a string.
func strict(identity address.Identity) json.Options {
	return json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(readString),
		json.UnmarshalFromFunc(readEmail(identity)),
		json.UnmarshalFromFunc(func(from *jsontext.Decoder, to **string) error {
			*to = new(string)
			return readString(from, *to)
		}),
		json.UnmarshalFromFunc(func(from *jsontext.Decoder, _ **bool) error {
			if kind := from.PeekKind(); kind != 't' && kind != 'f' {
				return notBool
			}
			return json.SkipFunc
		}),
		json.UnmarshalFromFunc(func(from *jsontext.Decoder, to *map[string]string) error {
			if from.PeekKind() != '{' {
				return notObject
			}
			return json.SkipFunc
		}),
	)))
}

// mistake is an error of a value, which it does not repeat.
type mistake string

func (m mistake) Error() string { return string(m) }

const (
	isNull    mistake = "expected a string; leave the field out instead of null"
	notString mistake = "expected a string"
	notObject mistake = "expected an object"
	notBool   mistake = "expected true or false"
	hasNUL    mistake = "a string must not contain NUL"
)

func readString(from *jsontext.Decoder, to *string) error {
	switch from.PeekKind() {
	case '"':
	case 'n':
		return isNull
	case 0: // not JSON
		_, err := from.ReadToken()
		return err
	default:
		return notString
	}
	token, err := from.ReadToken()
	if err != nil {
		return err
	}
	*to = token.String()
	if strings.ContainsRune(*to, 0) {
		return hasNUL
	}
	return nil
}

// complaint says what is wrong with a body, and where.
func complaint(err error, empty bool, fields []string) string {
	var offset int64
	var at jsontext.Pointer
	invalid, what := "Invalid JSON: ", string(notObject)
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset, at, what = e.ByteOffset, e.JSONPointer, "the body is not one JSON object in UTF-8"
	} else if e, ok := errors.AsType[*json.SemanticError](err); ok {
		offset, at = e.ByteOffset, e.JSONPointer
		invalid = "Invalid body: "
	}
	if known, ok := errors.AsType[mistake](err); ok {
		what = known.Error()
	}
	switch {
	case empty:
		what = "the body is empty"
	case errors.Is(err, jsontext.ErrDuplicateName):
		what = "duplicate field"
	case errors.Is(err, json.ErrUnknownName):
		what = "unknown field"
	}
	position := fmt.Sprintf(" (byte %d).", offset)
	if path := pathOf(at); path != "" {
		position = fmt.Sprintf(" (field %s, byte %d).", path, offset)
	}
	text := invalid + what + position
	if errors.Is(err, json.ErrUnknownName) {
		if meant := similar.To(at.LastToken(), fields); meant != "" {
			text += " Did you mean " + meant + "?"
		}
	}
	return text
}

// pathOf returns a place in a body as names with dots between them. It ends before a name that does
// not look like one and might be a value.
func pathOf(at jsontext.Pointer) string {
	const longest = 32
	var path []string
	for name := range at.Tokens() {
		if len(name) > longest || !apikey.IsName(name) || unicode.IsDigit(rune(name[0])) {
			break
		}
		path = append(path, name)
	}
	return strings.Join(path, ".")
}

// fieldNames returns the names that a body may have.
func fieldNames(into any) (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(into).Elem()) {
		if name := field.Tag.Get("json"); name != "" {
			names = append(names, name)
		}
	}
	return names
}
