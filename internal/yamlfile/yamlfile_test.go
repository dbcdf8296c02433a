package yamlfile_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/yamlfile"
)

type rules struct {
	Rules []struct{ Name string }
}

func read(t *testing.T, text string, into any) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("f.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := yamlfile.Read("f.yaml", into)
	return fmt.Sprint(err)
}

// Text that would keep the YAML library busy, or that means more than it says, is refused with one
// line, by a file of rules and one of settings.
func TestFile_HostileText_RefusedWithOneLine(t *testing.T) {
	const deep = "f.yaml: it is nested too deeply"
	of := func(unit string) string { return strings.Repeat(unit, 200_000/len(unit)) }
	bomb := "rules: &a0 [{name: x}, {name: x}]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("a%d: &a%[1]d [*a%d, *a%[2]d]\n", i+1, i)
	}
	for _, tt := range []struct{ text, want string }{
		{of("["), deep}, {of("{"), deep}, {of("{a: "), deep}, {of("[\n"), deep}, {of("- "), deep}, {"a:\n  " + of("- "), deep}, {of("- ? "), deep},
		{bomb, ""}, {"rules: &a [*a]", ""}, {"rules: [*gone]", ""}, {"<<: {rules: [{a: 1}]}", ""}, {"rules: !!binary x", ""},
		{"rules: []\n---\nrules: []", "f.yaml: it must be one YAML document"}, {"rules: \xff", "f.yaml: it is not UTF-8"},
	} {
		for _, into := range []any{new(rules), new(map[string]yamlfile.Value)} {
			if err := read(t, tt.text, into); !strings.HasPrefix(err, "f.yaml:") || !strings.HasPrefix(err, tt.want) || strings.Contains(err, "\n") {
				t.Errorf("%.30q: %v, want %q", tt.text, err, tt.want)
			}
		}
	}
	if err := read(t, "rules:\n"+of("- name: a - b\n"), new(rules)); err != "<nil>" {
		t.Errorf("a long list: %v", err)
	}
}
