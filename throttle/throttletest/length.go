package throttletest

import "testing"

// shorter is the part of a long test that is left under -short.
const shorter = 10

// Length is how much of a long test to do: n, and a tenth of it under -short.
func Length(n int) int {
	if testing.Short() {
		return max(1, n/shorter)
	}
	return n
}
