package throttletest

import "testing"

// shorter is the part of a long test that is left under -short.
const shorter = 10

// length is how much of a long test to do: n, and a tenth of it under -short.
func length(n int) int {
	if testing.Short() {
		return max(1, n/shorter)
	}
	return n
}
