package api

import (
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/web"
)

// showStart sends a browser that opens / to the documentation, which leads on to the console.
// Programs get a 404, as at any path without a route.
func (s *Server) showStart(c *fiber.Ctx) error {
	if !strings.Contains(c.Get("Accept"), "text/html") {
		return fiber.ErrNotFound
	}
	set(c, "Location", "/docs")
	c.Status(fiber.StatusSeeOther)
	c.Response().Header.SetContentType("text/plain; charset=utf-8")
	return nil
}

// showContract is openapi.yaml.
func (s *Server) showContract(c *fiber.Ctx) error {
	return respondRaw(c, "application/yaml", s.with.OpenAPI)
}

// showDocs shows openapi.yaml as a page that can send requests.
func (s *Server) showDocs(c *fiber.Ctx) error {
	body, err := s.docs()
	if err != nil {
		return err
	}
	set(c, "Content-Security-Policy", consolePolicy)
	return respondRaw(c, "text/html; charset=utf-8", body)
}

// newDocs makes the page at the first request for it.
func newDocs(contract []byte, version string) func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) { return web.Docs(contract, version) })
}
