package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// An Error is something in a file that cannot be right.
type Error struct {
	Place   Place
	Problem string // a sentence
}

func (e *Error) Error() string { return e.Place.String() + ": " + e.Problem }

// A Place is somewhere in a file.
type Place struct {
	File string
	Line int    // 0 if it is the file as a whole
	Part string // what stands there, such as "limit", as far as it has a plain name
}

// String is the place as people look for it: "rules.yaml:3: limit".
func (p Place) String() string {
	text := p.File
	if p.Line > 0 {
		text = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if p.Part != "" {
		text += ": " + p.Part
	}
	return text
}

// below is a place on a line below this one, with a name of its own. It goes by the name
// only if that is a plain word: any other may be a value that stands in the wrong place.
func (p Place) below(node ast.Node, name string) Place {
	p.Line = lineOf(node)
	switch {
	case !plain(name):
	case p.Part == "":
		p.Part = name
	default:
		p.Part += ": " + name
	}
	return p
}

// maxPlain is longer than any name there is, and shorter than most secrets.
const maxPlain = 32

// plain reports whether a name is a word of lower-case letters, digits, - and _.
func plain(name string) bool {
	for i, c := range []byte(name) {
		inner := i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '_')
		if (c < 'a' || c > 'z') && !inner {
			return false
		}
	}
	return name != "" && len(name) <= maxPlain
}

func lineOf(node ast.Node) int {
	if tag, tagged := node.(*ast.MappingValueNode); tagged {
		node = tag.Key
	}
	if token := node.GetToken(); token != nil && token.Position != nil {
		return token.Position.Line
	}
	return 0
}

// unreadable is the error where the YAML library fails: its own text quotes the lines around
// the mistake, which may hold a secret.
const unreadable = "this is not YAML that can be read"

// hints are what to do about it, by words of the library's message.
var hints = []struct{ says, hint string }{
	{"is not allowed in this context", ": check the indentation of this line and the next, and put a value with \": \" in it in quotes"},
	{"end token", ": a bracket is not closed"},
	{"end character", ": a quote is not closed"},
	{"unexpected key name", ": a name has no colon behind it"},
}

// hint says what is probably wrong with an unreadable line.
func hint(text []byte, line int, message string) string {
	for one := range bytes.Lines(text) {
		if line--; line == 0 && bytes.HasPrefix(bytes.TrimLeft(one, " "), []byte("\t")) {
			return ": a tab cannot indent"
		}
	}
	for _, known := range hints {
		if strings.Contains(message, known.says) {
			return known.hint
		}
	}
	return ""
}

// strayTab is the line of a tab inside a name or value without quotes. The YAML library
// drops it: 5, a tab and 5 would be read as 55.
func strayTab(tokens token.Tokens) (line int, problem string) {
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType, token.SingleQuoteType, token.DoubleQuoteType:
			continue
		}
		if strings.Contains(strings.TrimSpace(t.Origin), "\t") {
			return t.Position.Line, "a tab cannot be inside a name or a value"
		}
	}
	return 0, ""
}

// emptyDocument finds a document with nothing in it before another: the YAML library passes
// over all that comes behind it, as if it were not there.
func emptyDocument(tokens token.Tokens) (line int, problem string) {
	empty := false
	for _, t := range tokens {
		begins := t.Type == token.DocumentHeaderType
		if begins && empty {
			return t.Position.Line, severalDocuments
		}
		empty = begins || empty && t.Type == token.CommentType
	}
	return 0, ""
}

const severalDocuments = "it must be one document"

// byteOrderMark is what some editors begin a file with, to say that it is UTF-8.
const byteOrderMark = "\ufeff"

// Parse reads the one document of a file; the name is for errors. A file without any
// is a Value that is not Given.
func Parse(name string, text []byte) (Value, error) {
	whole := Value{Place: Place{File: name}}
	if !utf8.Valid(text) {
		return Value{}, whole.Refuse("it is not UTF-8")
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(text), byteOrderMark))
	for _, refused := range []func(token.Tokens) (line int, problem string){tooMuch, strayTab, emptyDocument} {
		if line, problem := refused(tokens); problem != "" {
			whole.Place.Line = line
			return Value{}, whole.Refuse(problem)
		}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // Mapping names the line of a duplicate
	if err != nil {
		var wrong yaml.Error
		if !errors.As(err, &wrong) || wrong.GetToken() == nil {
			return Value{}, whole.Refuse(unreadable)
		}
		whole.Place.Line = wrong.GetToken().Position.Line
		return Value{}, whole.Refuse(unreadable + hint(text, whole.Place.Line, wrong.GetMessage()))
	}
	for _, document := range file.Docs {
		if document.Body == nil {
			continue
		}
		if whole.Given() {
			return Value{}, whole.Refuse(severalDocuments)
		}
		whole.node = document.Body
	}
	return whole, nil
}
