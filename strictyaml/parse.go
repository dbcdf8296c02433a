package strictyaml

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
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
	Part string // what stands there, such as "limit", as far as it has a name
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

// below is a place on a line below this one, with a name of its own.
func (p Place) below(node ast.Node, name string) Place {
	p.Line = lineOf(node)
	switch {
	case p.Part == "":
		p.Part = name
	case name != "":
		p.Part += ": " + name
	}
	return p
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

// unreadable is all that is said where the YAML library refuses: its own words quote
// the lines around the mistake, which may hold a secret.
const unreadable = "this is not YAML that can be read"

// Parse reads the one document of a file; the name is for errors. A file without any
// is a Value that is not Given.
func Parse(name string, text []byte) (Value, error) {
	whole := Value{Place: Place{File: name}}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey()) // Mapping names the line of a duplicate
	if err != nil {
		var wrong yaml.Error
		if errors.As(err, &wrong) && wrong.GetToken() != nil {
			whole.Place.Line = wrong.GetToken().Position.Line
		}
		return Value{}, whole.Refuse(unreadable)
	}
	for _, document := range file.Docs {
		if document.Body == nil {
			continue
		}
		if whole.Given() {
			return Value{}, whole.Refuse("it must be one document")
		}
		whole.node = document.Body
	}
	return whole, nil
}
