// Command docsgen writes the API page, which shows openapi.yaml and docs/problems.md: go generate ./api/web.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"log"
	"os"

	"github.com/mailgate/mailgate"
)

//go:embed docs.html.tmpl
var layout string

func main() {
	explained, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		log.Fatal(err)
	}
	page, err := page(mailgate.OpenAPI, string(explained))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("docs.html", page, 0o644); err != nil {
		log.Fatal(err)
	}
}

// page returns the page that shows an OpenAPI contract, with a sample of each request that can be
// sent from the page, and explains the problems.
func page(openAPI []byte, explained string) ([]byte, error) {
	contract, err := readContract(openAPI)
	if err != nil {
		return nil, err
	}
	functions := template.FuncMap{"paragraphs": paragraphs, "inline": inline}
	parsed, err := template.New("docs").Funcs(functions).Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("reading the layout: %w", err)
	}
	var body bytes.Buffer
	if err := parsed.Execute(&body, map[string]any{"Contract": contract, "Problems": readProblems(explained)}); err != nil {
		return nil, fmt.Errorf("filling the layout: %w", err)
	}
	return body.Bytes(), nil
}
