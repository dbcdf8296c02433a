package api

import (
	"bytes"
	"context"
)

// start sends a browser that asks for / to the documentation, which leads on to the console.
// Programs are told that there is nothing, as at any other path without a route.
func start(_ context.Context, _ *call, in *incoming, out *answer) error {
	if !bytes.Contains(in.header.Peek("Accept"), []byte("text/html")) {
		return &problem{kind: notFound}
	}
	out.status, out.contentType = 303, "text/plain; charset=utf-8"
	out.add("Location", "/docs")
	return nil
}
