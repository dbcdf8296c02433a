// Package network parses the networks in settings and rules, and tells visitors apart by their
// addresses.
package network

import (
	"errors"
	"fmt"
	"net/netip"
)

// Parse parses a network such as 10.0.0.0/8 or 2001:db8::/32, or an address, which is a network
// of one. It refuses what can only be a mistake: bits beyond the network's length, a zone, IPv4
// written as IPv6. The error is one sentence, and repeats networks only: other text may be a
// secret or an email address.
func Parse(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if addr, plain := netip.ParseAddr(text); plain == nil && addr.Zone() == "" {
		prefix, err = addr.Prefix(addr.BitLen())
	}
	switch {
	case err != nil:
		return netip.Prefix{}, errors.New("write an IP address or a network, such as 192.0.2.7 or 10.0.0.0/8")
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%s is IPv4 written as IPv6; write it as 192.0.2.0/24", prefix)
	case prefix != prefix.Masked():
		return netip.Prefix{}, fmt.Errorf("%s has bits set beyond its length; the network is %s", prefix, prefix.Masked())
	}
	return prefix, nil
}
