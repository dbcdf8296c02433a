package strictyaml

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A Value is what stands at one place of a file.
type Value struct {
	Place Place
	node  ast.Node
}

// A Pair is a line of a mapping: a name and what it is given.
type Pair struct {
	Name  string
	Value Value
}

// Refuse is an error that says what is wrong with the value.
func (v Value) Refuse(problem string) error { return &Error{v.Place, problem} }

// Named is the value with a name put before those of its parts in errors.
func (v Value) Named(name string) Value {
	v.Place.Part = name
	return v
}

// Given reports whether there is anything: a name with nothing after it is not given.
func (v Value) Given() bool {
	if v.node == nil {
		return false
	}
	_, null := v.node.(*ast.NullNode)
	return !null
}

// Mapping is the lines of a mapping, in order. Names are plain words, each there once.
func (v Value) Mapping() ([]Pair, error) {
	nodes, ok := v.lines()
	if !ok {
		return nil, v.Refuse("it must be lines of name: value")
	}
	pairs := make([]Pair, 0, len(nodes))
	first := map[string]Place{}
	for _, node := range nodes {
		name, ok := node.Key.(*ast.StringNode)
		if !ok || controls(name.Value) {
			return nil, Value{Place: v.Place.below(node, "")}.Refuse("a name must be a plain word")
		}
		value := Value{v.Place.below(node, name.Value), node.Value}
		if before, twice := first[name.Value]; twice {
			return nil, value.Refuse("it was already set by " + before.String())
		}
		first[name.Value] = value.Place
		pairs = append(pairs, Pair{name.Value, value})
	}
	return pairs, nil
}

func (v Value) lines() ([]*ast.MappingValueNode, bool) {
	node, ok := v.node.(*ast.MappingNode)
	if !ok {
		return nil, false
	}
	return node.Values, true
}

// IsMapping reports whether it is lines of name: value.
func (v Value) IsMapping() bool {
	_, ok := v.lines()
	return ok
}

// Sequence is the entries of a list.
func (v Value) Sequence() ([]Value, error) {
	node, ok := v.node.(*ast.SequenceNode)
	if !ok {
		return nil, v.Refuse("it must be a list")
	}
	entries := make([]Value, 0, len(node.Values))
	for _, entry := range node.Values {
		entries = append(entries, Value{v.Place.below(entry, ""), entry})
	}
	return entries, nil
}

// IsSequence reports whether it is a list.
func (v Value) IsSequence() bool {
	_, ok := v.node.(*ast.SequenceNode)
	return ok
}

// Plain is a value on one line as it is written, whether YAML takes it for text, a
// number or a yes and no.
func (v Value) Plain() (string, error) {
	switch node := v.node.(type) {
	case *ast.StringNode:
		if controls(node.Value) {
			return "", v.Refuse("it must be one line without control characters")
		}
		return node.Value, nil
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		return node.GetToken().Value, nil
	}
	return "", v.Refuse("it must be a plain value")
}

// Text is a value that YAML takes for text.
func (v Value) Text() (string, error) {
	if _, ok := v.node.(*ast.StringNode); !ok {
		return "", v.Refuse("it must be text; a number, true or false is text in quotes only")
	}
	return v.Plain()
}

// Int is a whole number in decimal figures. One with zeros before it is refused: some who
// read YAML take 010 for eight.
func (v Value) Int() (int, error) {
	if node, ok := v.node.(*ast.IntegerNode); ok {
		text := node.GetToken().Value
		n, err := strconv.Atoi(text)
		if digits := strings.TrimLeft(text, "+-"); err == nil && len(digits) > 1 && digits[0] == '0' {
			return 0, v.Refuse("a number has no zeros before it")
		}
		if err == nil {
			return n, nil
		}
	}
	return 0, v.Refuse("it must be a whole number")
}

// Bool is true or false.
func (v Value) Bool() (bool, error) {
	if node, ok := v.node.(*ast.BoolNode); ok {
		switch node.GetToken().Value {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, v.Refuse("it must be true or false")
}

// Lookup is the text that a mapping has under a name, if it has one: to call the
// mapping by in errors about the rest of it. It does not check the rest.
func (v Value) Lookup(name string) (string, bool) {
	nodes, _ := v.lines()
	for _, node := range nodes {
		key, named := node.Key.(*ast.StringNode)
		text, plain := node.Value.(*ast.StringNode)
		if named && plain && key.Value == name {
			return text.Value, !controls(text.Value)
		}
	}
	return "", false
}

func controls(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}
