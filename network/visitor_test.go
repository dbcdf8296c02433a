package network_test

import (
	"net/netip"
	"testing"

	"github.com/mailgate/mailgate/network"
)

func TestVisitor(t *testing.T) {
	for addr, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64", "::1": "::/64",
	} {
		if got := network.Visitor(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if got := network.Visitor(netip.Addr{}); got != "" {
		t.Errorf("no address: %s", got)
	}
}
