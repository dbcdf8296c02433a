package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// listen takes an address as it is written: 0.0.0.0 is IPv4 alone, although the system
// would take it for IPv6 as well. No host at all is both.
func listen(address string) (net.Listener, error) {
	network := "tcp"
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Is4() {
		network = "tcp4"
	}
	return net.Listen(network, address)
}

// cannotListen leaves the address out of the system's words: the setting has it.
func cannotListen(s *settings.Settings, err error) error {
	var operation *net.OpError
	if errors.As(err, &operation) {
		err = operation.Err
	}
	return s.Complain("listen", fmt.Sprintf("cannot listen on %s: %v", s.Listen, err))
}
