package mailgate_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/need"
)

// TestMain says on the terminal what `go test ./...` skips, before its first line: of a package that passes, go test
// shows no output.
func TestMain(m *testing.M) {
	if terminal, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		if programs := missing(); len(programs) > 0 {
			fmt.Fprintf(terminal, "Tests that need %s are skipped, as these are missing here; `make test` installs them.\n", strings.Join(programs, ", "))
		}
		_ = terminal.Close()
	}
	os.Exit(m.Run())
}

// missing returns the programs of `make test` that are not here.
func missing() (programs []string) {
	script, _ := os.ReadFile(".ci/needs") // a copy without it says nothing
	line := regexp.MustCompile(`(?m)^needs="(.*)"$`).FindSubmatch(script)
	if line == nil {
		return nil
	}
	for name := range strings.FieldsSeq(string(line[1])) {
		name, _, _ = strings.Cut(name, "=")
		if _, found := need.Find(name); !found {
			programs = append(programs, name)
		}
	}
	return programs
}

// With an empty PATH, what lies in /usr/bin is missing.
func TestMissing_EmptyPath_NamesThem(t *testing.T) {
	t.Setenv("PATH", "")
	if programs := strings.Join(missing(), " "); !strings.Contains(programs, "redis-server") || !strings.Contains(programs, "npm") {
		t.Errorf("missing are %q", programs)
	}
}
