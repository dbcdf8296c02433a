package network_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/network"
)

// Parse agrees with net.ParseCIDR, and its result parses to itself. An error repeats networks only.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0.0/08", "010.0.0.1", "alice@example.com"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		prefix, err := network.Parse(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "@\r\n") || len(err.Error()) > 200 {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		if again, err := network.Parse(prefix.String()); again != prefix || err != nil {
			t.Fatalf("%q is %s, which is read as %s, %v", text, prefix, again, err)
		}
		whole := text
		if !strings.Contains(text, "/") {
			whole += "/" + map[bool]string{true: "32", false: "128"}[prefix.Addr().Is4()]
		}
		_, other, err := net.ParseCIDR(whole)
		if err != nil || other.String() != prefix.String() {
			t.Fatalf("%q is %s, and to another reader %v, %v", text, prefix, other, err)
		}
	})
}

// Visitor returns a network that contains the address; IPv6 addresses that differ in their last 64
// bits only are one visitor.
func FuzzVisitor(f *testing.F) {
	f.Add([]byte{203, 0, 113, 7}, uint64(1))
	f.Add([]byte(net.ParseIP("2001:db8:1:2:3:4:5:6")), uint64(7))
	f.Add([]byte(net.ParseIP("::ffff:203.0.113.7")), uint64(7))
	f.Fuzz(func(t *testing.T, octets []byte, rest uint64) {
		addr, ok := netip.AddrFromSlice(octets)
		if !ok {
			return
		}
		text := network.Visitor(addr)
		part, err := network.Parse(text)
		if err != nil || !part.Contains(addr.Unmap()) {
			t.Fatalf("%s counts as %q, %v", addr, text, err)
		}
		if addr.Unmap().Is4() {
			return
		}
		octets = append([]byte(nil), octets...)
		for i := range 8 {
			octets[8+i] = byte(rest >> (8 * i))
		}
		if neighbour, _ := netip.AddrFromSlice(octets); !neighbour.Is4In6() && network.Visitor(neighbour) != text {
			t.Fatalf("%s counts as %q, %s as %q", addr, text, neighbour, network.Visitor(neighbour))
		}
	})
}
