package network_test

import (
	"net"
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
