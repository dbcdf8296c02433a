package boundedfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/boundedfile"
)

func TestRead_SizesAndPaths_ReadsOrSaysWhy(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("twelve bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path string
		most int64
		want string // the text, or what the error says
	}{
		{path, 100, "twelve bytes"},
		{path, 12, "twelve bytes"},
		{path, 11, path + " is larger than 11 bytes"},
		{os.DevNull, 1, ""},
		{"/dev/zero", 1 << 10, "/dev/zero is larger than 1024 bytes"},
		{"/proc/self/mem", 1, "cannot read the file"}, // it is opened, and cannot be read from its start
		{dir, 100, dir + " is a directory"},
		{filepath.Join(dir, "nothing"), 100, "cannot read the file: open " + dir},
	}
	for _, tt := range tests {
		text, err := boundedfile.Read(tt.path, tt.most)
		said := string(text)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, tt.want) || err != nil && text != nil {
			t.Errorf("%s up to %d: %q, want %q", tt.path, tt.most, said, tt.want)
		}
	}
}
