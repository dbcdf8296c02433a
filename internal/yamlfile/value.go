package yamlfile

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Value is a plain value as it was written, whether YAML takes it for text, a number or a boolean;
// of a list, its values with commas between them.
type Value struct {
	Text string
	Line int
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (v *Value) UnmarshalYAML(node ast.Node) error {
	entries := []ast.Node{node}
	if list, ok := node.(*ast.SequenceNode); ok {
		entries = list.Values
	}
	texts := make([]string, len(entries))
	for i, entry := range entries {
		switch entry := entry.(type) {
		case *ast.StringNode:
			texts[i] = entry.Value
		case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
			texts[i] = entry.GetToken().Value
		default:
			return Wrong(node, "it must be a plain value on one line, or a list of them")
		}
	}
	*v = Value{strings.Join(texts, ","), lineOf(node)}
	return nil
}

// Wrong returns an error for UnmarshalYAML. The problem must repeat nothing of the file.
func Wrong(node ast.Node, problem string) error {
	return &wrongValue{yaml.SyntaxError{Message: problem, Token: node.GetToken()}}
}

// wrongValue is an error with a message of this package.
type wrongValue struct{ yaml.SyntaxError }
