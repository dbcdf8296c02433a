//go:build !linux || !amd64

package clock

import "time"

// Now is the machine's clock, in milliseconds since 1970.
func Now() int64 { return time.Now().UnixMilli() }
