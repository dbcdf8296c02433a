package api

import (
	"context"
)

// A page is a body with a type of its own.
type page struct {
	contentType string
	body        []byte
	csp         string
}

func writePage(out *answer, p *page) {
	out.status, out.contentType, out.csp = 200, p.contentType, p.csp
	out.body = append(out.body, p.body...)
}

// contract hands out openapi.yaml as it is.
func (s *Server) contract(context.Context, *call, struct{}) (page, error) {
	return page{contentType: "application/yaml", body: s.with.OpenAPI}, nil
}

type docs struct {
	contract []byte
	version  string
}

func (s *Server) page(context.Context, *call, struct{}) (page, error) {
	return page{contentType: "text/html; charset=utf-8"}, nil
}
