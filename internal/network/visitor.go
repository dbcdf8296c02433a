package network

import "net/netip"

// nat64 carries IPv4 addresses in their last 32 bits (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Visitor returns the part of an address that identifies one visitor. Of IPv6 these are the
// first 64 bits, as a subscriber can use any address with them; behind NAT64 it is the IPv4
// address inside. It is empty for the zero address.
func Visitor(client netip.Addr) string {
	client = client.Unmap().WithZone("")
	if nat64.Contains(client) {
		inside := client.As16()
		client = netip.AddrFrom4([4]byte(inside[12:]))
	}
	switch {
	case !client.IsValid():
		return ""
	case client.Is4():
		return client.String()
	}
	return netip.PrefixFrom(client, 64).Masked().String()
}

// KeyOf returns what limits count a connection by: the visitor, and the word for it, which no name of a caller can pass for.
func KeyOf(from netip.Addr) string { return "address " + Visitor(from) }

// shared are the addresses of subscribers behind the NAT of a carrier (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// Inside reports whether no visitor on the Internet has this address: private, loopback,
// link-local, unspecified, or behind the NAT of a carrier.
func Inside(client netip.Addr) bool {
	client = client.Unmap().WithZone("")
	return client.IsPrivate() || client.IsLoopback() || client.IsLinkLocalUnicast() || client.IsUnspecified() || shared.Contains(client)
}
