package api

import (
	"bytes"
	"slices"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/valyala/fasthttp"
)

// checkLocal refuses requests that a page of another site made a browser send. Without keys, every
// program of this machine is a caller, and a browser sends requests for any open page. The Origin
// and Sec-Fetch-Site headers show it or, where the page's own name resolves to a loopback address,
// the Host.
//
// A proxy on this machine sends requests for other machines, so forwarded requests are refused as
// well, unless TrustedProxies are set.
func (s *Server) checkLocal(header *fasthttp.RequestHeader) error {
	if err := s.checkHost(header); err != nil {
		return err
	}
	host := string(header.Host())
	for _, origin := range header.PeekAll("Origin") {
		if !network.IsOriginOf(string(origin), host) {
			return &problem{kind: forbidden}
		}
	}
	for _, site := range header.PeekAll("Sec-Fetch-Site") {
		if !bytes.Equal(site, []byte("same-origin")) && !bytes.Equal(site, []byte("none")) {
			return &problem{kind: forbidden}
		}
	}
	return nil
}

// checkHost refuses requests by a proxy, or by a name that can resolve to another machine.
func (s *Server) checkHost(header *fasthttp.RequestHeader) error {
	if len(s.with.Access.TrustedProxies) == 0 && slices.ContainsFunc(network.ForwardingHeaders, func(name string) bool { return header.Peek(name) != nil }) {
		return &problem{kind: forbidden, detail: "This server accepts requests from its own machine only. This request came through a proxy."}
	}
	if !network.IsLoopbackHost(string(header.Host())) {
		return &problem{kind: forbidden, detail: "This server accepts requests from its own machine only: the Host must be localhost, 127.0.0.1 or [::1]."}
	}
	return nil
}
