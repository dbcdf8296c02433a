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
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/mailgate/mailgate/internal/boundedfile"
	"github.com/mailgate/mailgate/internal/similar"
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

// File is a decoded file. It knows the lines of its parts.
type File struct {
	path string
	root *ast.File
}

// Read reads the file at the path and decodes it into a struct with yaml tags, or a map.
func Read(path string, into any) (*File, error) {
	text, err := boundedfile.Read(path, maxSize)
	if err != nil {
		return nil, err
	}
	return Decode(path, text, into)
}

// Decode decodes the text of the file at the path, as Read does.
func Decode(path string, text []byte, into any) (*File, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors write this mark
	f := &File{path: path}
	if problem := unfit(text); problem != "" {
		return nil, f.Wrong("", problem)
	}
	if err := f.decode(text, into); err != nil {
		return nil, f.explain(err, reflect.TypeOf(into))
	}
	if len(f.root.Docs) > 1 {
		return nil, f.Wrong("", "it must be one YAML document")
	}
	return f, nil
}

// unfit says why a text is not given to the library. The library's time grows with the square of the depth: a minute for
// 100,000 open brackets, or as many dashes of lists in one line.
func unfit(text []byte) string {
	const deepest = 100
	if !utf8.Valid(text) {
		return "it is not UTF-8"
	}
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
			return "it is nested too deeply"
		}
	}
	return ""
}

// decode returns an error also where the library panics, as it does for some aliases and tags: a
// mistake in a file must not end a server that reloads it.
func (f *File) decode(text []byte, into any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the YAML library panicked")
		}
	}()
	if f.root, err = parser.ParseBytes(text, 0); err != nil {
		return err
	}
	if err := f.valued(); err != nil {
		return err
	}
	return yaml.UnmarshalWithOptions(text, into, yaml.Strict())
}

// valued returns an error for a key whose value was removed: left out it may mean something else. At the top, a
// list of which all entries are comments is none.
func (f *File) valued() error {
	for _, doc := range f.root.Docs {
		if doc.Body == nil {
			continue
		}
		for _, node := range ast.Filter(ast.MappingValueType, doc.Body) {
			one := node.(*ast.MappingValueNode)
			text, ok := one.Value.(*ast.StringNode)
			if one.Value.Type() == ast.NullType && strings.ContainsAny(strings.TrimPrefix(one.GetPath(), "$."), ".[") || ok && text.Value == "" {
				return Wrong(one.Key, "this key has no value")
			}
		}
	}
	return nil
}

// Wrong returns an error about the part at a path such as $.rules[2].limit, or in the nearest part
// around it that the file has.
func (f *File) Wrong(path, problem string) error {
	for path != "" {
		if at, err := yaml.PathString(path); err == nil {
			if node, err := at.FilterFile(f.root); err == nil && node != nil {
				return &Error{f.path, lineOf(node), problem}
			}
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return &Error{f.path, 0, problem}
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

// explain rewrites an error of the library without values of the file, which was to be decoded into a type.
func (f *File) explain(err error, into reflect.Type) error {
	e := &Error{File: f.path, Problem: "this is not valid YAML"}
	var at yaml.Error
	if !errors.As(err, &at) {
		return e
	}
	if t := at.GetToken(); t != nil && t.Position != nil {
		e.Line = t.Position.Line
	}
	switch wrong := at.(type) {
	case *wrongValue:
		e.Problem = wrong.Message
	case *yaml.UnknownFieldError:
		e.Problem = "unknown key"
		if t := wrong.Token; t != nil && PlainWord(t.Value) {
			e.Problem = "unknown key " + t.Value
			if meant := similar.To(t.Value, keys(into)); meant != "" && meant != t.Value { // else it is a key of another place
				e.Problem += "; did you mean " + meant + "?"
			}
		}
	case *yaml.UnexpectedNodeTypeError:
		e.Problem = wrong.GetMessage() // of types alone
	case *yaml.TypeError:
		e.Problem = "it must be text"
		if wrong.DstType.Kind() == reflect.Bool {
			e.Problem = "it must be true or false"
		}
	case *yaml.SyntaxError:
		switch message := wrong.Message; {
		case strings.Contains(message, "already defined"):
			e.Problem = "the name is used twice"
		case strings.ContainsAny(message, "\"'`\n@"): // it may quote a secret
			e.Problem += ": check the indentation, brackets and quotes"
		default:
			e.Problem += ": " + message
		}
	}
	return e
}

// PlainWord reports whether a name is a short word of lower-case letters, digits, - and _, which a
// message can repeat.
func PlainWord(name string) bool {
	return name != "" && len(name) <= 32 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// keys returns the names that a type reads, also inside of it.
func keys(of reflect.Type) (all []string) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		return keys(of.Elem())
	case reflect.Struct:
		for field := range of.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); name != "" {
				all = append(all, name)
			}
			all = append(all, keys(field.Type)...)
		}
	}
	return all
}
