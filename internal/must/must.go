// Package must ends a test at an error that the test does not expect.
package must

import "testing"

// OK ends the test at an error.
func OK(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Get returns a function that returns the value, or ends the test at the error.
func Get[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return value
	}
}

// Have returns the value, or panics with the error: for set-up that several tests share.
func Have[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
