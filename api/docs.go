package api

import (
	"context"
	"sync"

	"github.com/mailgate/mailgate/api/web"
)

// contract hands out openapi.yaml as it is.
func (s *Server) contract(context.Context, *call, struct{}) (page, error) {
	return page{contentType: "application/yaml", body: s.with.OpenAPI}, nil
}

// page shows openapi.yaml as a page, on which requests can be tried.
func (s *Server) page(context.Context, *call, struct{}) (page, error) {
	body, err := s.docs()
	if err != nil {
		return page{}, err
	}
	return page{contentType: "text/html; charset=utf-8", body: body, csp: consolePolicy}, nil
}

// newDocs makes the page at the first request for it.
func newDocs(contract []byte, version string) func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) { return web.Docs(contract, version) })
}
