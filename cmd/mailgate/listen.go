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

// listeners are what a server listens on; ops is nil where it was not asked for.
type listeners struct{ main, ops net.Listener }

// listenAt opens the addresses of the settings, all or none.
func listenAt(s *settings.Settings) (l listeners, err error) {
	if l.main, err = listen(s.Listen); err != nil {
		return l, cannotListen(s, "listen", s.Listen, err)
	}
	if s.OpsListen == "" {
		return l, nil
	}
	if l.ops, err = listen(s.OpsListen); err != nil {
		return l, errors.Join(cannotListen(s, "ops_listen", s.OpsListen, err), l.main.Close())
	}
	return l, nil
}

// cannotListen leaves the address out of the system's words: the setting has it.
func cannotListen(s *settings.Settings, name, address string, err error) error {
	var operation *net.OpError
	if errors.As(err, &operation) {
		err = operation.Err
	}
	return s.Complain(name, fmt.Sprintf("cannot listen on %s: %v", address, err))
}
