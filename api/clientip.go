package api

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// client is the address that the request comes from. X-Forwarded-For counts only as it was before the
// body: the library keeps what comes after it apart.
func (s *Server) client(fast *fasthttp.RequestCtx) netip.Addr {
	if len(s.with.TrustedProxies) == 0 {
		return peerAddress(fast.RemoteAddr())
	}
	var forwarded []string
	for name, value := range fast.Request.Header.AllInOrder() {
		if string(name) == "X-Forwarded-For" {
			forwarded = append(forwarded, string(value))
		}
	}
	return clientAddress(fast.RemoteAddr(), forwarded, s.with.TrustedProxies)
}

// clientAddress is the peer of the connection or, where that is a trusted proxy, the address that
// the proxy names. X-Forwarded-For is read from the right, and each trusted proxy vouches for the
// entry before its own, so that what a client wrote there itself is never reached.
func clientAddress(peer net.Addr, forwarded []string, trusted []netip.Prefix) netip.Addr {
	at := peerAddress(peer)
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

func peerAddress(peer net.Addr) netip.Addr {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

func within(at netip.Addr, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(at) })
}
