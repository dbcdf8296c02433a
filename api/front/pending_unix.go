//go:build unix

package front

import (
	"net"

	"golang.org/x/sys/unix"
)

// pending reports whether the system has taken a connection that was not accepted yet.
func pending(l *net.TCPListener) (found bool) {
	raw, err := l.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		n, bad := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		found = bad == nil && n > 0
	})
	return found && err == nil
}
