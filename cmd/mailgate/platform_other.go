//go:build !unix

package main

import "math"

// Without the limits, modes and directories of Unix there is nothing to ask for.

func maxFiles() int { return math.MaxInt32 }

func keepPrivate() {}

func openToOthers(string) bool { return false }

func syncDir(string) error { return nil }
