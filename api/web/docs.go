package web

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"strings"
)

//go:embed docs.html.tmpl
var layout string

// guides are the pages of docs that the page shows before the contract, in this order.
var guides = []string{"getting-started", "sending", "countdown"}

// Docs returns the page that shows the guides and an OpenAPI contract, and explains the problems. pages has
// docs/problems.md, whose sections they are, and the guides. A sample of each request can be sent from the page.
func Docs(openAPI []byte, pages fs.FS, version string) ([]byte, error) {
	contract, err := readContract(openAPI)
	if err != nil {
		return nil, fmt.Errorf("web: reading openapi.yaml: %w", err)
	}
	guides, problems, err := readPages(pages)
	if err != nil {
		return nil, fmt.Errorf("web: reading the pages of docs: %w", err)
	}
	parsed, err := template.New("docs").Funcs(template.FuncMap{"markdown": markdown}).Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("web: reading the layout of the API page: %w", err)
	}
	var page bytes.Buffer
	if err := parsed.Execute(&page, map[string]any{"Contract": contract, "Guides": guides, "Problems": problems, "Version": version}); err != nil {
		return nil, fmt.Errorf("web: filling the layout of the API page: %w", err)
	}
	return page.Bytes(), nil
}

// A section is a guide, whose lead says who should read it, or the explanation of a problem.
type section struct{ ID, Title, Lead, Text string }

func readPages(pages fs.FS) (all, problems []section, err error) {
	read := func(name string) string {
		text, failed := fs.ReadFile(pages, "docs/"+name+".md")
		err = errors.Join(err, failed)
		return string(text)
	}
	for _, name := range guides {
		title, text, _ := strings.Cut(strings.TrimPrefix(read(name), "# "), "\n\n")
		lead, text, _ := strings.Cut(text, "\n\n")
		all = append(all, section{name, title, lead, text})
	}
	for _, text := range strings.Split(read("problems"), "\n## ")[1:] {
		name, text, _ := strings.Cut(text, "\n\n")
		problems = append(problems, section{ID: name, Title: name, Text: text})
	}
	return all, problems, err
}
