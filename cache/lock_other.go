//go:build !unix

package cache

import "os"

// Where there is no flock, Badger's own lock is the only one.
func lockDir(string) (*os.File, error) { return nil, nil }
