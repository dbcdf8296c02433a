package network

import "net/netip"

// Visitor is the part of an address that one visitor has to himself, as text to count
// by: of IPv6 the first 64 bits, as everybody gets so many addresses and can change them
// at will. It is empty for the zero address.
func Visitor(client netip.Addr) string {
	client = client.Unmap().WithZone("")
	switch {
	case !client.IsValid():
		return ""
	case client.Is4():
		return client.String()
	}
	return netip.PrefixFrom(client, 64).Masked().String()
}
