package main

import "time"

// now returns the time of this machine's clock in Unix milliseconds. The whole program uses it.
func now() int64 { return time.Now().UnixMilli() }
