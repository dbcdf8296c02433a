package settings

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds the settings file.
const maxFile = 1 << 20

// fromFile reads the settings in a YAML file: one mapping of names to values, or to
// lists of values. Anything else that YAML can say is refused, so that nobody has to
// guess what it means here.
func fromFile(config Origin) (layer, error) {
	text, err := readBounded(config.Text, maxFile)
	if err != nil {
		return nil, &Error{config.Place, err.Error()}
	}
	pairs, err := mapping(config.Text, text)
	if err != nil {
		return nil, err
	}
	known := keys(func(name string) string { return name })
	found := layer{}
	for _, pair := range pairs {
		name := pair.Key.String()
		place := fmt.Sprintf("%s:%d: %s", config.Text, pair.Key.GetToken().Position.Line, name)
		k, ok := known[name]
		if !ok {
			return nil, &Error{place, "there is no such setting; mailgate help lists them all"}
		}
		value, given, err := plainText(pair.Value)
		if err != nil {
			return nil, &Error{place, err.Error()}
		}
		if !given {
			continue
		}
		if err := found.put(k, Origin{Text: value, Place: place, Level: File}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// mapping is the pairs of a file's one document. What the YAML library says of a
// mistake quotes the lines around it, which may hold a secret: only its place and its
// own words are passed on. A name given twice passes here, to be named by its line later.
func mapping(path string, text []byte) ([]*ast.MappingValueNode, error) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	var wrong yaml.Error
	if errors.As(err, &wrong) && wrong.GetToken() != nil {
		return nil, &Error{fmt.Sprintf("%s:%d", path, wrong.GetToken().Position.Line), "this is not YAML that can be read"}
	}
	if err != nil {
		return nil, &Error{path, "this is not YAML that can be read"}
	}
	var pairs []*ast.MappingValueNode
	bodies := 0
	for _, document := range file.Docs {
		switch body := document.Body.(type) {
		case nil, *ast.NullNode:
			continue
		case *ast.MappingNode:
			pairs = body.Values
		case *ast.MappingValueNode:
			pairs = []*ast.MappingValueNode{body}
		default:
			return nil, &Error{path, "it must be lines of name: value"}
		}
		bodies++
	}
	if bodies > 1 {
		return nil, &Error{path, "it must be one document"}
	}
	return pairs, nil
}

// plainText is a value as it was written, or the values of a list with commas between
// them. A null is not given.
func plainText(node ast.Node) (text string, given bool, err error) {
	switch value := node.(type) {
	case *ast.NullNode:
		return "", false, nil
	case *ast.SequenceNode:
		var all []string
		for _, one := range value.Values {
			text, given, err := plainText(one)
			if _, nested := one.(*ast.SequenceNode); err != nil || nested || !given {
				return "", false, errors.New("a list may only hold plain values")
			}
			all = append(all, text)
		}
		return strings.Join(all, ","), len(all) > 0, nil
	case *ast.StringNode:
		return value.Value, true, nil
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		return value.GetToken().Value, true, nil
	}
	return "", false, errors.New("it must be a plain value or a list of them")
}
