//go:build !unix

package cache

import "math"

// Where the system cannot be asked, the disk is taken to have room.
func freeBytes(string) (int64, error) { return math.MaxInt64, nil }
