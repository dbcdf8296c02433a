// Package yamlfile decodes a YAML file that an operator wrote, in goccy's strict mode: an
// unknown or repeated name is an error. Each error is one line that names file and line, and
// never repeats a value, which may be an address or a secret.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/mailgate/mailgate/internal/boundedfile"
)

// maxSize is the largest file, in bytes.
const maxSize = 256 << 10

// Error is a mistake in a file.
type Error struct {
	File    string
	Line    int    // 0 for the file as a whole
	Problem string // a sentence
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Problem
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// byteOrderMark is what some editors begin a file with.
const byteOrderMark = "\ufeff"

// File is a decoded file. It knows the lines of its parts.
type File struct {
	name string
	root *ast.File
}

// Read reads and decodes the file at the path into a struct with yaml tags.
func Read(path string, into any) (*File, error) {
	text, err := boundedfile.Read(path, maxSize)
	if err != nil {
		return nil, err
	}
	return Decode(path, text, into)
}

// Decode decodes the text of a file; the name is for errors. An empty file is an error: it is
// more likely to be in the middle of being written than to mean something.
func Decode(name string, text []byte, into any) (*File, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	f, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	root := f.root
	switch {
	case len(root.Docs) > 1:
		return nil, &Error{File: name, Problem: "it must be one YAML document"}
	case len(root.Docs) == 0 || root.Docs[0].Body == nil || root.Docs[0].Body.Type() == ast.CommentType:
		return nil, &Error{File: name, Problem: "it is empty"}
	}
	if err := safely(func() error { return yaml.UnmarshalWithOptions(text, into, yaml.Strict()) }); err != nil {
		return nil, f.explain(err)
	}
	return f, nil
}

// parse refuses text with more than deepest open brackets, or as many dashes of lists in one line:
// the parser takes time by the square of that, a minute for 100,000 of them.
func parse(name string, text []byte) (f *File, err error) {
	const deepest = 100
	brackets, dashes := 0, 0
	for i, c := range text {
		switch {
		case c == '[' || c == '{':
			brackets++
		case c == ']' || c == '}':
			brackets--
		case c == '\n':
			dashes = 0
		case c == ' ' && i > 0 && text[i-1] == '-':
			dashes++
		}
		if max(brackets, dashes) > deepest {
			return nil, &Error{File: name, Problem: "it is nested too deeply"}
		}
	}
	f = &File{name: name}
	err = safely(func() (err error) {
		f.root, err = parser.ParseBytes(text, 0)
		return err
	})
	if err != nil {
		return nil, f.explain(err)
	}
	return f, nil
}

// safely returns an error where the library panics, as it does for some aliases and tags: a mistake
// in a file must not end a server that reloads it.
func safely(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the YAML library panicked")
		}
	}()
	return call()
}

// Wrong is a mistake in the part at a path such as $.rules[2].limit, or in the nearest part
// around it that the file has.
func (f *File) Wrong(path, problem string) error {
	for path != "" {
		if at, err := yaml.PathString(path); err == nil {
			if node, err := at.FilterFile(f.root); err == nil && node != nil {
				return &Error{File: f.name, Line: lineOf(node), Problem: problem}
			}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return &Error{File: f.name, Problem: problem}
}

func lineOf(node ast.Node) int {
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	if t := node.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// explain is an error of the library in words that repeat no value.
func (f *File) explain(err error) error {
	e := &Error{File: f.name, Problem: "this is not valid YAML"}
	var at yaml.Error
	if !errors.As(err, &at) {
		return e
	}
	if t := at.GetToken(); t != nil && t.Position != nil {
		e.Line = t.Position.Line
	}
	switch wrong := at.(type) {
	case *yaml.UnknownFieldError:
		e.Problem = "unknown key"
		if t := wrong.Token; t != nil && plainWord(t.Value) {
			e.Problem = "unknown key " + t.Value
		}
	case *yaml.DuplicateKeyError:
		e.Problem = usedTwice
	case *yaml.OverflowError:
		e.Problem = "the number is too large"
	case *yaml.TypeError:
		e.Problem = "it must be " + typeName(wrong.DstType)
	case *yaml.UnexpectedNodeTypeError:
		e.Problem = "it must be lines of name: value"
		if wrong.Expected == ast.SequenceType {
			e.Problem = "it must be a list"
		}
	case *yaml.SyntaxError:
		e.Problem = "this is not valid YAML: " + reason(wrong.Message)
		if strings.Contains(wrong.Message, "already defined") {
			e.Problem = usedTwice
		}
	}
	return e
}

const usedTwice = "the name is used twice"

// reason is a syntax error's message. One that quotes a part of the file is left out: lists
// of names are not worth a leaked secret.
func reason(message string) string {
	if strings.ContainsAny(message, "\"'`\n@") || strings.HasPrefix(message, "could not find") {
		return "look at the indentation, brackets and quotes"
	}
	return message
}

func typeName(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "lines of name: value"
	}
	return "a whole number"
}

// plainWord reports whether a name is a short word of lower-case letters, digits, - and _.
func plainWord(name string) bool {
	const most = 32
	return name != "" && len(name) <= most && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
