package mailtest

import (
	"fmt"
	"syscall"
)

// attributes make a server the head of a group of its own, with the rights of
// the account, that ends with the test's process.
func (a account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if a.switched {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attributes
}

// reservePort finds a free port of 127.0.0.1 and keeps it until release is
// called: the kernel gives it to nobody who asks for just any port. A socket
// that is bound and does not listen does that, and since both it and Exim's
// allow it (SO_REUSEADDR), Exim can listen there.
func reservePort() (port int, release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("opening a socket: %w", err)
	}
	if port, err = bindAny(fd); err != nil {
		_ = syscall.Close(fd)
		return 0, nil, err
	}
	return port, func() { _ = syscall.Close(fd) }, nil
}

func bindAny(fd int) (port int, err error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, fmt.Errorf("sharing a port: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("binding a port: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("reading the port: %w", err)
	}
	return name.(*syscall.SockaddrInet4).Port, nil
}
