package api

import (
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/gofiber/fiber/v2"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api/web"
)

// showStart sends a browser that opens / to the documentation, which leads on to the console.
// Programs get a 404, as at any path without a route.
func (s *Server) showStart(c *fiber.Ctx) error {
	if !strings.Contains(c.Get("Accept"), "text/html") {
		return fiber.ErrNotFound
	}
	return c.Type("txt", "utf-8").Redirect("/docs", fiber.StatusSeeOther)
}

const htmlType = "text/html; charset=utf-8"

// document makes the handler of a text that the first request for it makes.
func document(contentType string, compose func() ([]byte, error)) fiber.Handler {
	text := sync.OnceValues(compose)
	return func(c *fiber.Ctx) error {
		body, err := text()
		if err != nil {
			return err
		}
		if contentType == htmlType {
			set(c, "Content-Security-Policy", consolePolicy)
			isolate(c)
		}
		return respondRaw(c, contentType, body)
	}
}

// docsPage shows the contract as a page that can send requests.
func (s *Server) docsPage() ([]byte, error) {
	page, err := web.Docs(s.with.Docs.OpenAPI, mailgate.Pages, s.with.Docs.Version)
	return s.adapted(page), err
}

func (s *Server) contract() ([]byte, error) { return s.with.Docs.OpenAPI, nil }

// contractJSON is for generators that cannot read all of YAML.
func (s *Server) contractJSON() ([]byte, error) { return yaml.YAMLToJSON(s.with.Docs.OpenAPI) }
