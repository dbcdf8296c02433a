package front

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// Client returns the address that the request comes from. Trailers are not among the headers, so an
// X-Forwarded-For after the body does not count.
func Client(fast *fasthttp.RequestCtx, trusted []netip.Prefix) netip.Addr {
	if len(trusted) == 0 {
		return clientAddress(fast.RemoteAddr(), nil, nil)
	}
	var forwarded []string
	for name, value := range fast.Request.Header.AllInOrder() {
		if string(name) == "X-Forwarded-For" {
			forwarded = append(forwarded, string(value))
		}
	}
	return clientAddress(fast.RemoteAddr(), forwarded, trusted)
}

// clientAddress returns the peer of the connection or, where that is a trusted proxy, the address
// that the proxy names. It reads X-Forwarded-For from the right and stops at the first entry that is
// not a trusted proxy, so it never reaches what a client wrote there.
func clientAddress(peer net.Addr, forwarded []string, trusted []netip.Prefix) netip.Addr {
	tcp, _ := peer.(*net.TCPAddr) // nil has no address
	at := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, line := range slices.Backward(forwarded) {
		entries := strings.Split(line, ",")
		for _, entry := range slices.Backward(entries) {
			if !within(at, trusted) {
				return at
			}
			next, err := netip.ParseAddr(strings.TrimSpace(entry))
			if err != nil {
				return at
			}
			at = next.Unmap().WithZone("")
		}
	}
	return at
}

func within(at netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(at) })
}
