// Package boundedfile reads files from outside: whole, or not at all where
// they are larger than they can have reason to be.
//
//	text, err := boundedfile.Read("/run/secrets/key", 64<<10)
package boundedfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Read returns what is in the file. Of one that has more than most bytes, also of a
// device that never ends, it reads no more than that and fails. The error is one
// sentence that names the path.
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
