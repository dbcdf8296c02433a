package servertest

import "testing"

// Port finds a free port of 127.0.0.1 for a server, which keeps it until the test ends.
func Port(t testing.TB) int {
	t.Helper()
	port, release, err := reservePort()
	if err != nil {
		t.Fatalf("cannot find a free port for a server: %v", err)
	}
	t.Cleanup(release)
	return port
}
