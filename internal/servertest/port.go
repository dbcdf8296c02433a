package servertest

import "testing"

// Port reserves a free port of 127.0.0.1 for a server until the test ends.
func Port(t testing.TB) int {
	t.Helper()
	port, release, err := reservePort()
	if err != nil {
		t.Fatalf("finding a free port: %v", err)
	}
	t.Cleanup(release)
	return port
}
