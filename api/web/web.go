// Package web holds what browsers load: the countdown component for any page, the page of the API, and
// the operators' console. The pages of mailgate dev load parts of it too.
//
// The pages load nothing from other servers and run no inline script.
package web

import (
	"embed"
	"io/fs"
)

//go:embed *.html *.css *.js *.ts *.svg
var files embed.FS

// FS holds console.html and what the pages load, and the countdown element of mailgate-countdown.js, whose interface is in
// mailgate-countdown.d.ts.
func FS() fs.FS { return files }
