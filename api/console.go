package api

import (
	"bytes"
	"io/fs"
	"net/http"
	"path"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/filesystem"
	"github.com/mailgate/mailgate/api/web"
)

// consolePolicy lets the page run its own scripts and call its own server, and nothing else.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// consolePage is the operators' page. It is public: it requests its data with the operator's key, which stays in the
// browser.
func (s *Server) consolePage() ([]byte, error) {
	page, err := fs.ReadFile(web.FS(), "console.html")
	return s.adapted(page), err
}

// adapted returns a page that says whether keys are needed, with links to the pages of mailgate dev behind it.
func (s *Server) adapted(page []byte) []byte {
	if s.with.Access.APIKeys.IsZero() && s.with.Access.AdminKeys.IsZero() {
		page = bytes.Replace(page, []byte(`content="asked-for"`), []byte(`content="none"`), 1)
	}
	if s.with.Docs.Dev {
		page = bytes.ReplaceAll(page, []byte(" data-dev hidden"), nil)
	}
	return page
}

// showConsoleFile answers with a file that the page loads.
func (s *Server) showConsoleFile(c *fiber.Ctx) error {
	name := c.Params("file")
	switch path.Ext(name) {
	case ".css", ".js", ".svg":
		isolate(c)
		return filesystem.SendFile(c, http.FS(web.FS()), name)
	}
	return fiber.ErrNotFound
}

// isolate keeps other sites from loading the console or controlling its window.
func isolate(c *fiber.Ctx) {
	set(c, "Referrer-Policy", "no-referrer")
	set(c, "Cross-Origin-Opener-Policy", "same-origin")
	set(c, "Cross-Origin-Resource-Policy", "same-origin")
}
