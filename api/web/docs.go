package web

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

//go:embed docs.html.tmpl
var layout string

// Docs returns the page that shows an OpenAPI contract and explains the problems, which are the sections of
// docs/problems.md. A sample of each request can be sent from the page.
func Docs(openAPI, problems []byte, version string) ([]byte, error) {
	contract, err := readContract(openAPI)
	if err != nil {
		return nil, fmt.Errorf("web: reading openapi.yaml: %w", err)
	}
	functions := template.FuncMap{"paragraphs": paragraphs, "inline": inline}
	parsed, err := template.New("docs").Funcs(functions).Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("web: reading the layout of the API page: %w", err)
	}
	var page bytes.Buffer
	if err := parsed.Execute(&page, map[string]any{"Contract": contract, "Problems": readProblems(string(problems)), "Version": version}); err != nil {
		return nil, fmt.Errorf("web: filling the layout of the API page: %w", err)
	}
	return page.Bytes(), nil
}

// problem is a section of docs/problems.md.
type problem struct{ Name, Text string }

var otherPage = regexp.MustCompile(`\]\(([a-z]+\.md[^)]*)\)`)

// readProblems returns the sections, with links that lead from any server to the other pages.
func readProblems(page string) (all []problem) {
	page = otherPage.ReplaceAllString(page, "](https://github.com/mailgate/mailgate/blob/main/docs/$1)")
	for _, section := range strings.Split(page, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n\n")
		all = append(all, problem{name, strings.TrimSpace(text)})
	}
	return all
}

// paragraphs splits a description.
func paragraphs(text string) []string { return strings.Split(text, "\n\n") }

var link = regexp.MustCompile(`\[([^\]]+)\]\((https://[^)\s]+)\)`)

// inline escapes a text and turns `this` into code and [this](https://…) into a link.
func inline(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = link.ReplaceAllString(template.HTMLEscapeString(part), `<a href="$2">$1</a>`)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}
