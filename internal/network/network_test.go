package network_test

import (
	"net"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/network"
)

func TestParse_EachForm_ReadOrRefused(t *testing.T) {
	const neither = "write an IP address or a network, such as 192.0.2.7 or 10.0.0.0/8"
	tests := []struct{ text, want string }{
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"192.0.2.7", "192.0.2.7/32"},
		{"2001:DB8::/32", "2001:db8::/32"},
		{"::1", "::1/128"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"10.1.2.3/8", "10.1.2.3/8 has bits set beyond its length; the network is 10.0.0.0/8"},
		{"::ffff:10.0.0.0/104", "::ffff:10.0.0.0/104 is IPv4 written as IPv6; write it as 192.0.2.0/24"},
		{"::ffff:10.0.0.1", "::ffff:10.0.0.1/128 is IPv4 written as IPv6; write it as 192.0.2.0/24"},
		{"fe80::1%eth0", neither},
		{"10.0.0.0/33", neither},
		{"alice@example.com", neither},
		{"fe80::1%alice@example.com", neither},
		{"", neither},
	}
	for _, tt := range tests {
		prefix, err := network.Parse(tt.text)
		got := prefix.String()
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: %s, want %s", tt.text, got, tt.want)
		}
	}
}

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
