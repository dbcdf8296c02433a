//go:build !unix

package main

import "math"

// Without the limits and modes of Unix there is nothing to ask for.

func maxFiles() int { return math.MaxInt32 }

func keepPrivate() {}
