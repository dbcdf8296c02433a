// Package web holds what browsers load: the countdown component for any page, the page of the API, and
// the operators' console. The pages of mailgate dev load parts of it too.
//
// The pages load nothing from other servers and run no inline script.
package web

import (
	"bytes"
	"embed"
	"io/fs"
)

//go:embed *.html *.css *.js *.svg
var files embed.FS

// FS holds console.html and what the pages load.
func FS() fs.FS { return files }

// LinkDev returns the console or the API page with links to the pages of mailgate dev, and to each
// other by way of it, which hands the keys over.
func LinkDev(page []byte) []byte {
	page = bytes.ReplaceAll(page, []byte(" data-dev hidden"), nil)
	page = bytes.ReplaceAll(page, []byte(`<a href="/admin">`), []byte(`<a href="/console">`))
	return bytes.ReplaceAll(page, []byte(`<a href="/docs">`), []byte(`<a href="/api">`))
}
