package api

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/goccy/go-yaml"
)

// A node is a place in a YAML document, which knows the order of what it holds. A
// place that is not there is an empty node, so that a path through the document needs
// no question at every step.
type node struct {
	value, root any
}

// get is a member, or what it refers to.
func (n node) get(name string) node {
	for key, member := range n.all() {
		if key == name {
			return member
		}
	}
	return node{nil, n.root}
}

// all are the members of an object, in order.
func (n node) all() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		members, _ := n.value.(yaml.MapSlice)
		for _, member := range members {
			if !yield(fmt.Sprint(member.Key), node{member.Value, n.root}) {
				return
			}
		}
	}
}

// list is the entries of a list.
func (n node) list() (entries []node) {
	values, _ := n.value.([]any)
	for _, value := range values {
		entries = append(entries, node{value, n.root})
	}
	return entries
}

// string is a scalar as text.
func (n node) string() string {
	switch n.value.(type) {
	case nil, yaml.MapSlice, []any:
		return ""
	}
	return fmt.Sprint(n.value)
}

// text is a scalar member.
func (n node) text(name string) string { return strings.TrimSpace(n.get(name).string()) }

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

// json writes the node as JSON: what fits a line on one, the rest indented.
func (n node) json(indent string) string {
	switch value := n.value.(type) {
	case yaml.MapSlice:
		var members []string
		for name, member := range n.all() {
			members = append(members, quoted(name)+": "+member.json(indent+"  "))
		}
		return lines("{", members, "}", indent)
	case []any:
		var entries []string
		for _, entry := range n.list() {
			entries = append(entries, entry.json(indent+"  "))
		}
		return lines("[", entries, "]", indent)
	default:
		return quoted(value)
	}
}

// lineWidth is how long one line of an example may be.
const lineWidth = 96

func lines(open string, parts []string, end, indent string) string {
	line := open + strings.Join(parts, ", ") + end
	if len(indent)+len(line) <= lineWidth && !strings.Contains(line, "\n") {
		return line
	}
	inner := "\n" + indent + "  "
	return open + inner + strings.Join(parts, ","+inner) + "\n" + indent + end
}

func quoted(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
