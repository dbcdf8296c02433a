//go:build !unix

package main

import (
	"io"
	"math"
)

// Without the limits and modes of Unix there is nothing to ask for.

func maxFiles() int { return math.MaxInt32 }

func keepPrivate() {}

func toJournal(io.Writer) bool { return false }
