package yamlfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/yamlfile"
)

// Text that would keep the YAML library busy, or that means more than it says, is refused with one
// line, by both ways to read a file.
func TestFile_HostileText_RefusedWithOneLine(t *testing.T) {
	const deep = "f.yaml: it is nested too deeply"
	of := func(unit string) string { return strings.Repeat(unit, 200_000/len(unit)) }
	bomb := "rules: &a0 [{name: x}, {name: x}]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("a%d: &a%[1]d [*a%d, *a%[2]d]\n", i+1, i)
	}
	for _, tt := range []struct{ text, want string }{
		{of("["), deep}, {of("{"), deep}, {of("{a: "), deep}, {of("[\n"), deep}, {of("- "), deep}, {"a:\n  " + of("- "), deep}, {of("- ? "), deep},
		{bomb, ""}, {"rules: &a [*a]", ""}, {"rules: [*gone]", ""}, {"<<: {rules: []}\nname: x", ""}, {"rules: !!binary x", ""}, {"rules: []\n---\nrules: []", ""},
	} {
		var into struct {
			Rules []struct{ Name string }
		}
		_, decoded := yamlfile.Decode("f.yaml", []byte(tt.text), &into)
		_, read := yamlfile.Lines("f.yaml", []byte(tt.text))
		for _, err := range []error{decoded, read} {
			if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:") || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%.30q: %v, want %q", tt.text, err, tt.want)
			}
		}
	}
	plain := "rules:\n" + of("- name: a - b\n")
	if _, err := yamlfile.Decode("f.yaml", []byte(plain), new(struct{ Rules []struct{ Name string } })); err != nil {
		t.Errorf("a long list: %v", err)
	}
}
