package api

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// bodyReader reads the objects that callers send: one object whose values are strings, or one
// more object of strings. The decoder refuses a name that is there twice and a text that is not
// UTF-8; names are compared to the letter. Each of these would be a way around a check.
//
// A complaint tells the place and never repeats a value.
type bodyReader struct {
	*jsontext.Decoder
	field string // that is being read, for complaints
}

// field is one member that an object may have: a string, or an object of strings.
type field struct {
	name string
	text *text
	all  *map[string]string
}

// text is a string field that may be left out, which is not the same as empty.
type text struct {
	value string
	given bool
}

// decoders are those of earlier bodies, each of which has some memory of its own.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// readObject reads a body that is one object with these fields, each at most once.
func readObject(body []byte, fields []field) error {
	r := &bodyReader{Decoder: decoders.Get().(*jsontext.Decoder)}
	defer decoders.Put(r.Decoder)
	r.Reset(bytes.NewBuffer(body))
	if len(body) == 0 {
		return r.complain("the body is empty")
	}
	err := r.object(func(name string) (err error) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if i < 0 {
			return r.unknown(name, fields)
		}
		f := fields[i]
		r.field = f.name
		defer func() { r.field = "" }()
		if f.text != nil {
			f.text.given = true
			f.text.value, err = r.str()
			return err
		}
		all := map[string]string{}
		*f.all = all
		return r.object(func(name string) (err error) {
			all[name], err = r.str()
			return err
		})
	})
	if err == nil && len(bytes.Trim(body[r.InputOffset():], " \t\r\n")) > 0 {
		err = r.complain("there is more after the object")
	}
	return err
}

// object reads an object, with one call of member after each name.
func (r *bodyReader) object(member func(name string) error) error {
	if token, err := r.ReadToken(); err != nil || token.Kind() != '{' {
		return r.expected("an object", err)
	}
	for r.PeekKind() == '"' {
		name, err := r.str()
		if err == nil {
			err = member(name)
		}
		if err != nil {
			return err
		}
	}
	if token, err := r.ReadToken(); err != nil || token.Kind() != '}' {
		return r.expected("the object's end", err)
	}
	return nil
}

// str reads a string. It shares no memory with the body.
func (r *bodyReader) str() (string, error) {
	null := r.PeekKind() == 'n'
	token, err := r.ReadToken()
	switch {
	case null:
		return "", r.complain("a string is expected; what is null is to be left out")
	case err != nil || token.Kind() != '"':
		return "", r.expected("a string", err)
	}
	value := token.String()
	if strings.ContainsRune(value, 0) {
		return "", r.complain("a NUL cannot be in a text")
	}
	return value, nil
}

// unknown complains about a field. Its name is repeated only where it was meant to be one of
// ours, since anything else might be a value in the wrong place.
func (r *bodyReader) unknown(name string, fields []field) error {
	for _, f := range fields {
		if strings.EqualFold(unbroken(f.name), unbroken(name)) {
			return r.complain("a field is unknown: is " + f.name + " meant? It has to be spelt so")
		}
	}
	return r.complain("a field is unknown")
}

// unbroken is a name as it is in any style, but for letter case.
func unbroken(name string) string { return strings.NewReplacer("_", "", "-", "").Replace(name) }

// expected complains about a token that is another, or that cannot be read.
func (r *bodyReader) expected(what string, err error) error {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return r.complain("a name is there twice")
	case err != nil:
		return r.complain(what + " is expected, and this is not JSON in UTF-8")
	}
	return r.complain(what + " is expected")
}

func (r *bodyReader) complain(what string) error {
	place := fmt.Sprintf("byte %d", r.InputOffset())
	if r.field != "" {
		place = "field " + r.field + ", " + place
	}
	return &problem{kind: badRequest, detail: "Invalid JSON: " + what + " (" + place + ")."}
}
