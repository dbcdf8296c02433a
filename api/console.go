package api

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/web"
)

// consoleTypes are the files that the console's page loads, with their types.
var consoleTypes = map[string]string{
	"style.css":          "text/css; charset=utf-8",
	"console.css":        "text/css; charset=utf-8",
	"mark.svg":           "image/svg+xml",
	"docs.css":           "text/css; charset=utf-8",
	"docs.js":            "text/javascript; charset=utf-8",
	"address.js":         "text/javascript; charset=utf-8",
	"busy.js":            "text/javascript; charset=utf-8",
	"lengths.js":         "text/javascript; charset=utf-8",
	"memory.js":          "text/javascript; charset=utf-8",
	"console.js":         "text/javascript; charset=utf-8",
	"console_ask.js":     "text/javascript; charset=utf-8",
	"console_lanes.js":   "text/javascript; charset=utf-8",
	"console_mailbox.js": "text/javascript; charset=utf-8",
	"console_table.js":   "text/javascript; charset=utf-8",
	"console_trial.js":   "text/javascript; charset=utf-8",
	"console_figures.js": "text/javascript; charset=utf-8",
}

// consolePolicy lets the page run its own scripts and call its own server, and nothing else.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// console is the operators' page and the files that it loads. None of them is secret: the page
// requests its data with the operator's key, which stays in the browser.
type console struct {
	page  []byte
	files map[string][]byte
}

// readConsole reads the page's files. The page learns whether it has to ask for a key.
func readConsole(withoutKey bool) (c console, err error) {
	files := web.FS()
	if c.page, err = fs.ReadFile(files, "console.html"); err != nil {
		return c, fmt.Errorf("api: reading the console: %w", err)
	}
	if withoutKey {
		c.page = bytes.Replace(c.page, []byte(`content="asked-for"`), []byte(`content="none"`), 1)
	}
	c.files = map[string][]byte{}
	for name := range consoleTypes {
		if c.files[name], err = fs.ReadFile(files, name); err != nil {
			return c, fmt.Errorf("api: reading the console: %w", err)
		}
	}
	return c, nil
}

// showConsole is the page itself.
func (s *Server) showConsole(c *fiber.Ctx) error {
	set(c, "Content-Security-Policy", consolePolicy)
	isolate(c)
	return respondRaw(c, "text/html; charset=utf-8", s.console.page)
}

// showConsoleFile is a file that the page loads.
func (s *Server) showConsoleFile(c *fiber.Ctx) error {
	name := c.Params("file")
	file, known := s.console.files[name]
	if !known {
		return fiber.ErrNotFound
	}
	isolate(c)
	return respondRaw(c, consoleTypes[name], file)
}

// isolate keeps other sites from loading the console or keeping a handle on its window.
func isolate(c *fiber.Ctx) {
	set(c, "Referrer-Policy", "no-referrer")
	set(c, "Cross-Origin-Opener-Policy", "same-origin")
	set(c, "Cross-Origin-Resource-Policy", "same-origin")
}
