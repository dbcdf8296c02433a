package strictyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/strictyaml"
)

// What would keep the YAML library busy is refused before it sees it.
func TestBounds(t *testing.T) {
	const size = 64 << 10
	of := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	const deep, many, unreadable = "it is nested too deeply", "the file has too many names and lists", "this is not YAML that can be read"
	for _, tt := range []struct{ text, want string }{
		{of("["), deep}, {of("{"), deep}, {of("{a: "), deep}, {of("[\n"), deep}, {of("b: [\n"), deep},
		{of("- "), deep}, {of("? "), deep}, {of("a: "), deep}, {of("&a "), deep}, {of("!a "), deep}, {of(": "), deep},
		{strings.Repeat("[", 10) + of("]["), many}, {staircase("a:\n"), deep}, {staircase("-\n"), deep},
		{"a: [" + of("{}, ") + "]", many}, {"a: {" + of("b, ") + "}", many}, {"a: {" + of("b: c, ") + "}", many},
		{of("a: b\n"), many}, {of("a:\n"), many}, {of("? a\n"), many}, {of("- a: b\n"), many}, {of("-\n"), many}, {of("- []\n"), many},
		{of("&a\n"), many}, {of("--- a\n"), many}, {of("---\n"), many}, {of("...\n"), many}, {of("- &a b\n"), many}, {of("- !a b\n"), many}, {of("- |\n a\n"), many},
		{of("a: b\r\n"), many}, {of("<<: b\n"), many}, {of("%a\n"), many},
		{"a: " + strings.Repeat("[", 18) + strings.Repeat("]", 18), deep}, {names(3501), many},
		{of("]"), unreadable}, {strings.Repeat("a:\n", 1000) + of("]"), unreadable},
	} {
		_, err := strictyaml.Parse("f.yaml", []byte(tt.text))
		if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:") || !strings.HasSuffix(err.Error(), ": "+tt.want) {
			t.Errorf("%.20q…: %v, want %s", tt.text, err, tt.want)
		}
	}
}

// staircase is a line inside the one above it, and so on.
func staircase(line string) string {
	var b strings.Builder
	for i := range 700 {
		b.WriteString(strings.Repeat(" ", i) + line)
	}
	return b.String()
}

// names are so many lines that each have a name of their own.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "n%d: v\n", i)
	}
	return b.String()
}

// What people write is far from the bounds, however long it is.
func TestWithinBounds(t *testing.T) {
	var lists strings.Builder
	for range 1000 {
		lists.WriteString("  - a: b\n    c: [d, e, f]\n")
	}
	texts := strings.Repeat("      - \"]}[{ a: b\"\n", 10_000)
	for _, text := range []string{
		names(3500), "a:\n" + lists.String(),
		"a:\n- b:\n    c:\n      d:\n" + texts,
		"a: [" + strings.Repeat("b, ", 10_000) + "b]",
		"# [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\na: b",
		strings.Repeat("# a: b\n", 10_000) + "a: b",
		"a: " + strings.Repeat("[", 17) + strings.Repeat("]", 17),
		"a: '" + strings.Repeat("[", 100) + "'",
	} {
		if _, err := parse(text); err != nil {
			t.Errorf("%.40q…: %v", text, err)
		}
	}
}
