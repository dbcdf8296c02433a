package api

import "github.com/valyala/fasthttp"

// What answers say that pages from anywhere may read. No cookie or key comes with such a
// request, and what is in the answer is for any holder of the address.
var crossOrigin = [][2]string{
	{"Access-Control-Allow-Origin", "*"},
	{"Access-Control-Expose-Headers", "*"},
	{"Cross-Origin-Resource-Policy", "cross-origin"},
}

// What a browser asks before it sends a request that is not plain.
var preflight = [][2]string{
	{"Access-Control-Allow-Methods", "GET, HEAD"},
	{"Access-Control-Allow-Headers", "*"},
	{"Access-Control-Max-Age", "86400"},
}

func setCrossOrigin(h *fasthttp.ResponseHeader, r *route) {
	for _, field := range crossOrigin {
		h.SetCanonical([]byte(field[0]), []byte(field[1]))
	}
	if r.method != fasthttp.MethodOptions {
		return
	}
	for _, field := range preflight {
		h.SetCanonical([]byte(field[0]), []byte(field[1]))
	}
}
