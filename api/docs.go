package api

import (
	"strings"

	"github.com/gofiber/fiber/v2"
)

// showStart sends a browser that opens / to the documentation, which leads on to the console.
// Programs get a 404, as at any path without a route.
func (s *Server) showStart(c *fiber.Ctx) error {
	if !strings.Contains(c.Get("Accept"), "text/html") {
		return fiber.ErrNotFound
	}
	return c.Type("txt", "utf-8").Redirect("/docs", fiber.StatusSeeOther)
}

// showContract serves openapi.yaml.
func (s *Server) showContract(c *fiber.Ctx) error {
	return respondRaw(c, "application/yaml", s.with.Docs.OpenAPI)
}

// showContractJSON serves the same for generators that cannot read all of YAML.
func (s *Server) showContractJSON(c *fiber.Ctx) error {
	body, err := s.contractJSON()
	if err != nil {
		return err
	}
	return respondRaw(c, "application/json", body)
}

// showDocs serves openapi.yaml as a page that can send requests.
func (s *Server) showDocs(c *fiber.Ctx) error {
	body, err := s.docs()
	if err != nil {
		return err
	}
	set(c, "Content-Security-Policy", consolePolicy)
	isolate(c)
	return respondRaw(c, "text/html; charset=utf-8", body)
}
