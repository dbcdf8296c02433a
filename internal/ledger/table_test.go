package ledger

import (
	"os"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
)

// Each row has a word that docs/problems.md explains, a problem that it explains, and for
// an email that was not accepted an answer at both doors.
func TestTable_EachRow_IsExplained(t *testing.T) {
	read := func(name string) string { return string(must.Get(os.ReadFile("../../docs/" + name))(t)) }
	problems := read("problems.md")
	words := map[string]*What{}
	for _, what := range Table {
		if what.counted == sends {
			if before := words[what.Word]; before != nil {
				t.Errorf("%q is the word of two outcomes of a send", what.Word)
			}
			words[what.Word] = what
			if !strings.Contains(problems, "`"+what.Word+"`") {
				t.Errorf("docs/problems.md lacks %q", what.Word)
			}
		}
		if what.Problem != "" && !strings.Contains(problems, "\n## "+what.Problem+"\n") {
			t.Errorf("%q: docs/problems.md lacks %q", what.Word, what.Problem)
		}
		if what.Kind != "" && (what.Problem == "" || what.SMTP.Code == 0 || ofKind[what.Kind] != what) {
			t.Errorf("%q has no answer at a door: %+v", what.Word, what)
		}
	}
}
