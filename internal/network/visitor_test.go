package network_test

import (
	"net/netip"
	"testing"

	"github.com/mailgate/mailgate/internal/network"
)

func TestVisitor_Addresses_AsOneVisitor(t *testing.T) {
	for addr, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64", "::1": "::/64", "64:ff9b::203.0.113.7": "203.0.113.7", "64:ff9b:1::203.0.113.7": "64:ff9b:1::/64",
	} {
		if got := network.Visitor(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if got := network.Visitor(netip.Addr{}); got != "" {
		t.Errorf("no address: %s", got)
	}
}

func TestInside_Addresses_PrivateOrNot(t *testing.T) {
	for addr, want := range map[string]bool{
		"10.0.0.7": true, "172.31.255.255": true, "192.168.1.1": true, "fd00::7": true, "::ffff:10.0.0.7": true,
		"127.0.0.1": true, "::1": true, "169.254.1.1": true, "fe80::1%eth0": true, "0.0.0.0": true, "::": true,
		"100.64.0.0": true, "100.127.255.255": true, "::ffff:100.64.0.1": true,
		"100.63.255.255": false, "100.128.0.0": false, "172.32.0.0": false, "203.0.113.7": false, "2001:db8::7": false,
	} {
		if got := network.Inside(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if network.Inside(netip.Addr{}) {
		t.Error("no address is one")
	}
}
