// Package boundedfile reads files of limited size.
//
//	text, err := boundedfile.Read("/run/secrets/key", 64<<10)
package boundedfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Hidden reports whether systemd would pass the file to the running service alone, so that no other process finds it.
func Hidden(path string) bool {
	_, err := os.Stat(path)
	return err != nil && strings.HasPrefix(path, "/run/credentials/")
}

// Read returns the content of a file, or fails if that is more than most bytes, as of a device
// that never ends. The error is one sentence that names the path.
func Read(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	text, bad := io.ReadAll(io.LimitReader(file, most+1))
	if err := errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("the file %s is larger than %d bytes", path, most)
	}
	return text, nil
}
