package house_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// The module of the samples needs what ours needs, so that nothing is fetched.
func TestSamples_Go_CompileElsewhere(t *testing.T) {
	root := must.Get(os.Getwd())(t)
	ours := files(t, "go.mod", "go.sum")
	module := strings.NewReplacer("module github.com/mailgate/mailgate\n",
		"module acme.example/sample\nrequire github.com/mailgate/mailgate v0.0.0\nreplace github.com/mailgate/mailgate => "+root+"\n").Replace(ours["go.mod"])
	sample := map[string]string{"go.mod": module, "go.sum": ours["go.sum"]}
	for page, text := range files(t, ".md") {
		for i, block := range regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(text, -1) {
			sample[fmt.Sprintf("%s.%d/sample.go", page, i)] = block[1]
		}
	}
	if len(sample) == 2 {
		t.Error("no page has a sample")
	}
	dir := t.TempDir()
	for name, text := range sample {
		servertest.Write(t, filepath.Join(dir, name), text)
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
	vet.Dir = dir
	if text, err := vet.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}
