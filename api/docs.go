package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/web"
)

//go:embed docs.html
var docsHTML string

//go:embed docs.css
var docsCSS string

//go:embed docs.js
var docsJS string

// showStart sends a browser that opens / to the documentation, which leads on to the console.
// Programs are told that there is nothing, as at any other path without a route.
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

// showDocs shows openapi.yaml as a page that can send requests. Its policy allows its one script
// and requests to its own server, and nothing else.
func (s *Server) showDocs(c *fiber.Ctx) error {
	body, err := s.docs()
	if err != nil {
		return err
	}
	set(c, "Content-Security-Policy", docsPolicy())
	return respondRaw(c, "text/html; charset=utf-8", body)
}

func docsPolicy() string {
	return "default-src 'none'; style-src " + hashOf(docsCSS) + "; script-src " + hashOf(docsJS) +
		"; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// hashOf allows exactly this text in a policy.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// iconOf is an icon that is in the page. Without one browsers ask for /favicon.ico, and some
// complain that the policy forbids it.
func iconOf(svg []byte) template.URL {
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg))
}

// newDocs makes the page at the first request for it, and once.
func newDocs(contract []byte, version string) func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) {
		read, err := readContract(contract)
		if err != nil {
			return nil, err
		}
		shape, err := template.New("docs").Funcs(template.FuncMap{"prose": prose, "inline": inline}).Parse(docsHTML)
		if err != nil {
			return nil, fmt.Errorf("reading the docs page: %w", err)
		}
		mark, err := fs.ReadFile(web.FS(), "mark.svg")
		if err != nil {
			return nil, fmt.Errorf("reading the docs page: %w", err)
		}
		var body bytes.Buffer
		err = shape.Execute(&body, map[string]any{
			"Contract": read, "Version": version, "CSS": template.CSS(docsCSS), "JS": template.JS(docsJS), "Icon": iconOf(mark),
		})
		if err != nil {
			return nil, fmt.Errorf("making the docs page: %w", err)
		}
		return body.Bytes(), nil
	})
}

// prose is a text's paragraphs, each with its code marked.
func prose(text string) (paragraphs []template.HTML) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		paragraphs = append(paragraphs, inline(paragraph))
	}
	return paragraphs
}

// inline turns `this` into code, and escapes everything.
func inline(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}
