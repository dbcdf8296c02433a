package api

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"

	"github.com/mailgate/mailgate/api/web"
)

// consoleParts are the files that the console's page loads, with their types.
var consoleParts = map[string]string{
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
	"console_trial.js":   "text/javascript; charset=utf-8",
	"console_figures.js": "text/javascript; charset=utf-8",
}

// consolePolicy lets the page run its own scripts and call its own server, and nothing else.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// consoleFiles is the operators' page and the files that it loads. None of them is secret: the
// page requests its data with the operator's key, which stays in the browser.
type consoleFiles struct {
	page  []byte
	parts map[string]page
}

// readConsole reads the page's files, once. The page learns whether it has to ask for a key.
func (s *Server) readConsole() (c consoleFiles, err error) {
	files := web.FS()
	if c.page, err = fs.ReadFile(files, "console.html"); err != nil {
		return c, fmt.Errorf("api: reading the console: %w", err)
	}
	if s.with.AdminKeys.IsZero() {
		c.page = bytes.Replace(c.page, []byte(`content="asked-for"`), []byte(`content="none"`), 1)
	}
	c.parts = map[string]page{}
	for name, contentType := range consoleParts {
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return c, fmt.Errorf("api: reading the console: %w", err)
		}
		c.parts[name] = page{contentType: contentType, body: body}
	}
	return c, nil
}

// showConsole is the page itself.
func (s *Server) showConsole(context.Context, *call, struct{}) (page, error) {
	return page{contentType: "text/html; charset=utf-8", body: s.console.page, csp: consolePolicy}, nil
}

func readPartName(in *incoming) (string, error) { return string(in.parameter), nil }

// consolePart is one file that the page loads.
func (s *Server) consolePart(_ context.Context, _ *call, name string) (page, error) {
	part, known := s.console.parts[name]
	if !known {
		return page{}, &problem{kind: notFound}
	}
	return part, nil
}

func writeConsole(out *answer, p *page) {
	writePage(out, p)
	out.add("Referrer-Policy", "no-referrer")
	out.add("Cross-Origin-Opener-Policy", "same-origin")
	out.add("Cross-Origin-Resource-Policy", "same-origin")
}
