package api

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

// Whatever a client writes into X-Forwarded-For, it is taken for the address that the
// trusted proxy saw it at, also if that proxy is behind another.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "10.0.0.9", "10.0.0.9, 10.0.0.8", ",", "\n", "10.0.0.9\n10.0.0.8\n", "unknown", "::ffff:10.0.0.9", "1.1.1.1,,"} {
		f.Add(seed, uint32(0xcb007107), true)
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, wrote string, from uint32, twice bool) {
		client := netip.AddrFrom4([4]byte{byte(from >> 24), byte(from >> 16), byte(from >> 8), byte(from)})
		if within(client, trusted) {
			return
		}
		lines := strings.Split(wrote, "\n")
		ownLine := append(append([]string(nil), lines...), client.String())
		lines[len(lines)-1] += ", " + client.String()
		for _, forwarded := range [][]string{lines, ownLine} {
			if twice {
				forwarded[len(forwarded)-1] += ", 10.0.0.2"
			}
			proxy := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4711}
			if got := clientAddress(proxy, forwarded, trusted); got != client {
				t.Fatalf("%q was taken for %s, and is %s", forwarded, got, client)
			}
			stranger := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}
			if got := clientAddress(stranger, forwarded, trusted); got.String() != "192.0.2.1" {
				t.Fatalf("%q of a stranger was believed: %s", forwarded, got)
			}
		}
	})
}
