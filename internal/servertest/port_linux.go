package servertest

import (
	"fmt"
	"syscall"
)

// reservePort reserves a free port of 127.0.0.1 for a server that may stop and start again: until
// release is called the kernel gives the port to no other socket that asks for any free port.
// A socket that is bound but does not listen has that effect, and SO_REUSEADDR on both sides lets
// the server listen beside it.
func reservePort() (port int, release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("opening a socket: %w", err)
	}
	port, err = bindFreePort(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return 0, nil, err
	}
	return port, func() { _ = syscall.Close(fd) }, nil
}

func bindFreePort(fd int) (int, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, fmt.Errorf("letting a server share the port: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("binding a free port: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("reading the port: %w", err)
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}
