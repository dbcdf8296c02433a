package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/goccy/go-yaml"
)

// A node is one value of a YAML document, with its members in the order of the document.
// A missing member is an empty node, so that a path needs no check at each step.
type node struct {
	value, root any
}

// parseYAML returns the root of a document.
func parseYAML(text []byte) (node, error) {
	var root any
	err := yaml.UnmarshalWithOptions(text, &root, yaml.UseOrderedMap())
	return node{root, root}, err
}

func (n node) get(name string) node {
	for key, member := range n.members() {
		if key == name {
			return member
		}
	}
	return node{nil, n.root}
}

func (n node) members() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		members, _ := n.value.(yaml.MapSlice)
		for _, member := range members {
			if !yield(fmt.Sprint(member.Key), node{member.Value, n.root}) {
				return
			}
		}
	}
}

func (n node) list() (entries []node) {
	values, _ := n.value.([]any)
	for _, value := range values {
		entries = append(entries, node{value, n.root})
	}
	return entries
}

// string returns a scalar as text.
func (n node) string() string {
	switch n.value.(type) {
	case nil, yaml.MapSlice, []any:
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(n.value))
}

// text returns a scalar member as text.
func (n node) text(name string) string { return n.get(name).string() }

// resolved follows a $ref inside the document.
func (n node) resolved() node {
	ref := n.text("$ref")
	if !strings.HasPrefix(ref, "#/") {
		return n
	}
	at := node{n.root, n.root}
	for step := range strings.SplitSeq(ref[2:], "/") {
		at = at.get(step)
	}
	return at
}

// lineWidth is how long JSON may be that is not indented.
const lineWidth = 60

// json returns the node as JSON.
func (n node) json() (string, error) {
	text, err := yaml.MarshalWithOptions(n.value, yaml.JSON())
	if err != nil {
		return "", err
	}
	text = bytes.TrimSpace(text)
	if len(text) <= lineWidth {
		return string(text), nil
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, "", "  ")
	return b.String(), err
}
