package yamlfile

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// Line is a name of a file and its value as it was written. Of a list it has the values with
// commas between them.
type Line struct {
	Name, Value string
	Where       string // "mailgate.yaml:3: tiers", without the name if that is no plain word
}

// Lines reads a file that has nothing but names with plain values, or with lists of plain
// values. A name without a value, and a file without names, are left out.
func Lines(name string, text []byte) ([]Line, error) {
	if !utf8.Valid(text) {
		return nil, &Error{File: name, Problem: "it is not UTF-8"}
	}
	f, err := parse(name, bytes.TrimPrefix(text, []byte(byteOrderMark)))
	if err != nil {
		return nil, err
	}
	var lines []Line
	for i, document := range f.root.Docs {
		if i > 0 {
			return nil, f.Wrong("", "it must be one YAML document")
		}
		if document.Body == nil || document.Body.Type() == ast.CommentType {
			continue
		}
		body, ok := document.Body.(ast.MapNode)
		if !ok {
			return nil, f.Wrong("", "it must be lines of name: value")
		}
		for pairs := body.MapRange(); pairs.Next(); {
			line, err := f.line(pairs.KeyValue())
			if err != nil {
				return nil, err
			}
			if line.Value != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

func (f *File) line(pair *ast.MappingValueNode) (Line, error) {
	wrong := &Error{File: f.name, Line: lineOf(pair.Key)}
	key, ok := pair.Key.(*ast.StringNode)
	if !ok {
		wrong.Problem = "a name must be a plain word"
		return Line{}, wrong
	}
	line := Line{Name: key.Value, Where: fmt.Sprintf("%s:%d", wrong.File, wrong.Line)}
	if plainWord(key.Value) {
		line.Where += ": " + key.Value
		wrong.Problem = key.Value + ": "
	}
	entries := []ast.Node{pair.Value}
	if list, ok := pair.Value.(*ast.SequenceNode); ok {
		entries = list.Values
	} else if pair.Value.Type() == ast.NullType {
		return line, nil
	}
	values := make([]string, len(entries))
	for i, entry := range entries {
		if values[i], ok = plainValue(entry); !ok {
			wrong.Problem += "it must be a plain value on one line, or a list of them"
			return line, wrong
		}
	}
	line.Value = strings.Join(values, ",")
	return line, nil
}

// plainValue is the text of a value, whether YAML takes it for text, a number or a boolean.
func plainValue(node ast.Node) (text string, plain bool) {
	switch node := node.(type) {
	case *ast.StringNode:
		return node.Value, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		return node.GetToken().Value, true
	}
	return "", false
}
