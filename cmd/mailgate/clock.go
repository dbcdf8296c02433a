package main

import "time"

// now is the clock of this machine, in milliseconds since 1970. All that uses the time here
// goes by it.
func now() int64 { return time.Now().UnixMilli() }
