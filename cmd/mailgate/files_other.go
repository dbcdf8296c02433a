//go:build !unix

package main

import "math"

// mostFiles is not bounded where there is no limit to ask for.
func mostFiles() int { return math.MaxInt32 }
