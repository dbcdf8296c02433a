// Package web is what browsers get of mailgate dev: a sign-up page and an inbox.
//
// The pages are self-contained: they load nothing from elsewhere, run no inline
// script, and ask the paths under /demo/ alone.
package web

import (
	"embed"
	"io/fs"
)

//go:embed *.html *.css *.js *.svg
var files embed.FS

// FS holds the pages, index.html and inbox.html, and what they load.
func FS() fs.FS { return files }
