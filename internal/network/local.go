package network

import (
	"net/netip"
	"strconv"
	"strings"
)

// ForwardingHeaders are the fields by which a proxy shows that it has passed a request on.
var ForwardingHeaders = []string{"Forwarded", "Via", "X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// IsOriginOf reports whether an Origin is that of pages of this host.
func IsOriginOf(origin, host string) bool {
	scheme, at, ok := strings.Cut(origin, "://")
	return ok && (scheme == "http" || scheme == "https") && strings.EqualFold(at, host)
}

// IsLoopbackHost reports whether a Host header names this machine by a name that cannot resolve to
// another one.
func IsLoopbackHost(host string) bool {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	if port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
	}
	if name == "[::1]" || strings.EqualFold(name, "localhost") {
		return true
	}
	at, err := netip.ParseAddr(name)
	return err == nil && at.Is4() && at.IsLoopback()
}
