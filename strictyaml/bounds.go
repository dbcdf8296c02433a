package strictyaml

import "github.com/goccy/go-yaml/token"

// The YAML library takes time by the square of how deep a file is nested and of how many
// names it has: 100,000 brackets keep it busy for half a minute. To cut a file into
// tokens takes it no longer than to read it, so they are counted before it does more.
const (
	maxDepth = 20   // things within each other; files that people write need six
	maxMarks = 3500 // names, brackets and whatever else is no plain value
)

// tooMuch is what a file has too much of, and the line where that shows; empty if
// nothing.
func tooMuch(tokens token.Tokens) (line int, problem string) {
	var in nesting
	marks := 0
	for i, t := range tokens {
		if !in.add(t) {
			return t.Position.Line, unreadable
		}
		if in.depth() > maxDepth {
			return t.Position.Line, "it is nested too deeply"
		}
		if in.isMark(tokens, i) {
			marks++
		}
		if marks > maxMarks {
			return t.Position.Line, "the file has too many names and lists"
		}
	}
	return 0, ""
}

// nesting is what a token stands in: what began on its line and on those above at columns
// before its own, and brackets, in which columns mean nothing.
type nesting struct {
	columns  []int
	brackets []token.Type
}

func (n *nesting) depth() int { return len(n.columns) + len(n.brackets) }

// add goes on to the next token. It is false for a bracket that closes none.
func (n *nesting) add(t *token.Token) bool {
	switch t.Type {
	case token.CommentType:
		return true
	case token.SequenceEndType, token.MappingEndType:
		if len(n.brackets) == 0 {
			return false
		}
		n.brackets = n.brackets[:len(n.brackets)-1]
		return true
	}
	if len(n.brackets) == 0 {
		n.beginAt(t.Position.Column)
	}
	if t.Type == token.SequenceStartType || t.Type == token.MappingStartType {
		n.brackets = append(n.brackets, t.Type)
	}
	return true
}

// beginAt ends what began at this column or behind it.
func (n *nesting) beginAt(column int) {
	for len(n.columns) > 0 && n.columns[len(n.columns)-1] >= column {
		n.columns = n.columns[:len(n.columns)-1]
	}
	n.columns = append(n.columns, column)
}

// isMark reports whether a token makes work beyond its own. Plain values do not, nor do
// entries of a list that have a value.
func (n *nesting) isMark(tokens token.Tokens, i int) bool {
	switch t := tokens[i]; t.Type {
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.BoolType, token.NullType,
		token.IntegerType, token.FloatType, token.CommentType, token.SequenceEndType, token.MappingEndType:
		return false
	case token.CollectEntryType:
		return len(n.brackets) == 0 || n.brackets[len(n.brackets)-1] == token.MappingStartType
	case token.SequenceEntryType:
		return i+1 == len(tokens) || tokens[i+1].Position.Line != t.Position.Line
	}
	return true
}
