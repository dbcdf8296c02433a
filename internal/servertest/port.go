package servertest

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
)

// Port reserves a free port of 127.0.0.1 until the test ends, for a server that may stop and start again. A socket
// is bound to the port and does not listen: Linux then gives the port to no program that asks for any free one.
// SO_REUSEADDR on both sides lets the server listen beside it. On other systems another program could take the port.
func Port(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatalf("opening a socket: %v", err)
	}
	syscall.CloseOnExec(fd)
	release := func() { _ = syscall.Close(fd) }
	if runtime.GOOS == "linux" {
		t.Cleanup(release)
	} else {
		defer release()
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatalf("letting a server share the port: %v", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatalf("binding a free port: %v", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatalf("reading the port: %v", err)
	}
	return name.(*syscall.SockaddrInet4).Port
}

// Address returns an address of 127.0.0.1 with a [Port].
func Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", Port(t))
}
