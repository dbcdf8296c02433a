package local_test

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// bytesOf is a sum of each file below the directory.
func bytesOf(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	sums := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		sums[path] = sha256.Sum256(content)
		return err
	})
	if err != nil || len(sums) == 0 {
		t.Fatalf("%d files in the directory, %v", len(sums), err)
	}
	return sums
}
