//go:build !unix

package submission

import "net"

// pending is not known here: a client that sends its next command before it has read a reply, and then loses
// that, sends its email again as a new one.
func pending(net.Conn) bool { return false }
