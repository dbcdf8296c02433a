// Package web holds what browsers load: the countdown component for any page, the page of the
// API, the operators' console, and the sign-up page and inbox of mailgate dev.
//
// The pages load nothing from other servers and run no inline script.
package web

import (
	"embed"
	"io/fs"
)

//go:embed *.html *.css *.js *.svg
var files embed.FS

// FS holds index.html, inbox.html, console.html, and what the pages load. Docs makes the API page.
func FS() fs.FS { return files }
