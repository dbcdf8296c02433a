//go:build unix

package submission

import (
	"net"
	"syscall"
)

// pending reports whether something has arrived that was not read yet.
func pending(c net.Conn) (any bool) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { // an error means that it is closed
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		any = n > 0 && err == nil
	})
	return any
}
