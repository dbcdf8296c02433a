// Package web holds what browsers load: the countdown component for any page, the page of the API, and
// the operators' console. The pages of mailgate dev load parts of it too.
//
// docs.html is made of openapi.yaml and docs/problems.md by go generate.
//
// The pages load nothing from other servers and run no inline script.
package web

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"io/fs"
)

//go:generate go run ./docsgen

//go:embed *.html *.css *.js *.svg
var files embed.FS

// FS holds console.html and what the pages load. Docs is the API page.
func FS() fs.FS { return files }

// Docs returns the page that shows openapi.yaml, with this version of the program.
func Docs(version string) ([]byte, error) {
	page, err := files.ReadFile("docs.html")
	if err != nil {
		return nil, fmt.Errorf("web: reading the API page: %w", err)
	}
	return bytes.Replace(page, []byte("<em>version</em>"), []byte("<em>"+html.EscapeString(version)+"</em>"), 1), nil
}

// LinkDev returns the console or the API page with links to the pages of mailgate dev, and to each
// other by way of it, which hands the keys over.
func LinkDev(page []byte) []byte {
	page = bytes.ReplaceAll(page, []byte(" data-dev hidden"), nil)
	page = bytes.ReplaceAll(page, []byte(`<a href="/admin">`), []byte(`<a href="/console">`))
	return bytes.ReplaceAll(page, []byte(`<a href="/docs">`), []byte(`<a href="/api">`))
}
