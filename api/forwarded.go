package api

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// client is who asks. What a proxy says of it is in the header as it came: a request that
// cannot be read to its end may have more in it by now, see hasTrailer.
func (s *Server) client(fast *fasthttp.RequestCtx) netip.Addr {
	if len(s.with.TrustedProxies) == 0 {
		return peerAddress(fast.RemoteAddr())
	}
	var forwarded []string
	fast.Request.Header.VisitAllInOrder(func(name, value []byte) {
		if string(name) == "X-Forwarded-For" {
			forwarded = append(forwarded, string(value))
		}
	})
	return clientAddress(fast.RemoteAddr(), forwarded, s.with.TrustedProxies)
}

// clientAddress is who asks: the peer of the connection or, where that is a trusted
// proxy, whom it says it speaks for. X-Forwarded-For is read from the right, each
// proxy vouching for the entry before its own, so that what a client wrote there
// itself is never reached.
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
