package api

import (
	"context"
	"strings"

	"github.com/mailgate/mailgate/api/web"
)

// scriptLife lets a browser use the script for an hour without asking. Its address does
// not change with it, so for longer a page could meet a server that has moved on.
const scriptLife = "public, max-age=3600"

// A file is what every page may load.
type file struct {
	contentType string
	web.Component
}

// component makes the files of the countdown, once.
func (s *Server) component() error {
	script, err := web.Countdown()
	if err != nil {
		return err
	}
	types, err := web.CountdownTypes()
	if err != nil {
		return err
	}
	s.script = file{"text/javascript; charset=utf-8", script}
	s.types = file{"application/typescript", types}
	return nil
}

// A download is which form of a file a browser takes, and which it has.
type download struct {
	gzip  bool
	known string // If-None-Match
}

func readDownload(in *incoming) (download, error) {
	return download{
		gzip:  takesGzip(string(in.header.Peek("Accept-Encoding"))),
		known: string(in.header.Peek("If-None-Match")),
	}, nil
}

// takesGzip reads an Accept-Encoding as far as it matters here.
func takesGzip(accepted string) bool {
	for one := range strings.SplitSeq(accepted, ",") {
		name, quality, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(one, " ", "")), ";q=")
		if name == "gzip" {
			return strings.Trim(quality, "0.") != "" || quality == ""
		}
	}
	return false
}

// handsOut is the handler of a file's route.
func handsOut(f *file) func(context.Context, *call, download) (page, error) {
	return func(_ context.Context, _ *call, d download) (page, error) {
		p := page{contentType: f.contentType, body: f.Plain, etag: f.ETag, cache: scriptLife}
		if d.gzip {
			p.body, p.encoding = f.Gzip, "gzip"
			p.etag = strings.TrimSuffix(f.ETag, `"`) + `-gzip"`
		}
		p.known = knows(d.known, p.etag)
		return p, nil
	}
}

// knows reports whether an If-None-Match names the tag, weak or strong.
func knows(header, etag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == etag || one == "*" {
			return true
		}
	}
	return false
}
