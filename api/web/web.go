// Package web holds what browsers load: the countdown component for any page, the
// operators' console, and the sign-up page and inbox of mailgate dev.
//
// The pages are self-contained: they load nothing from elsewhere and run no inline
// script. Those of mailgate dev call only paths under /demo/, the console those under
// /admin/.
package web

import (
	"embed"
	"io/fs"
)

//go:embed *.html *.css *.js *.svg
var files embed.FS

// FS holds the pages, index.html, inbox.html and console.html, and what they load.
func FS() fs.FS { return files }
