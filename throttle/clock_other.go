//go:build !linux || !amd64

package throttle

import "time"

// Now is the machine's clock, in milliseconds since 1970. Every decision asks it.
func Now() int64 { return time.Now().UnixMilli() }
