package network_test

import (
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
