package meter_test

import (
	"os"
	"strings"
	"testing"
)

// The documentation has the picture as it is drawn, with the edges over the columns that
// begin there.
func TestPictureInTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	const edge, minute = 16 + 6, 30 // columns
	edges := strings.Repeat(" ", edge) + "edge" + strings.Repeat(" ", minute-len("edge")) + "edge\n"
	want := ""
	for line := range strings.Lines(edges + picture()) {
		want += "//\t" + line
	}
	if !strings.Contains(string(text), "//\n"+want+"//\n") {
		t.Errorf("doc.go lacks\n%s", want)
	}
}
