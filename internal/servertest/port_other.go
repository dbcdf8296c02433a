//go:build !linux

package servertest

import (
	"fmt"
	"net"
)

// reservePort finds a free port of 127.0.0.1. Only Linux can keep it reserved
// while a server listens on it, so here another program could take it between.
func reservePort() (port int, release func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("listening on a free port: %w", err)
	}
	port = listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return 0, nil, fmt.Errorf("freeing the port: %w", err)
	}
	return port, func() {}, nil
}
