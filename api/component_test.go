package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The countdown's files are compressed on request, not sent again to clients that have them, and
// readable by pages of any origin.
func TestCountdownFiles_Requested_CachedAndCompressed(t *testing.T) {
	r := newRig(t, setup{})
	tags := map[string]bool{}
	for path, tt := range map[string]struct{ contentType, has string }{
		"/countdown.js":   {"text/javascript; charset=utf-8", "export class MailgateCountdown"},
		"/countdown.d.ts": {"application/typescript", "export class MailgateCountdown"},
	} {
		for _, encoding := range []string{"", "identity", "br;q=1, gzip;q=0", "gzip", "deflate, gzip;q=0.5, br"} {
			got := r.request("GET", path, http.Header{"Accept-Encoding": {encoding}}, "")
			small := strings.Contains(strings.ToLower(encoding), "gzip") && !strings.Contains(encoding, "q=0") || strings.Contains(encoding, "q=0.5")
			want := map[string]string{"Content-Type": tt.contentType, "Cache-Control": "public, max-age=3600", "Vary": "Accept-Encoding", "Access-Control-Allow-Origin": "*", "Content-Encoding": ""}
			if small {
				want["Content-Encoding"] = "gzip"
				unpacked := must(gzip.NewReader(bytes.NewReader([]byte(got.text))))(t)
				got.text = string(must(io.ReadAll(unpacked))(t))
			}
			got.carries(t, want)
			if got.status != 200 || !strings.Contains(got.text, tt.has) {
				t.Errorf("%s: %d, %d bytes", path, got.status, len(got.text))
			}
			tag := got.header.Get("ETag")
			tags[tag] = true
			for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
				again := r.request("GET", path, http.Header{"Accept-Encoding": {encoding}, "If-None-Match": {known}}, "")
				again.carries(t, map[string]string{"ETag": tag, "Vary": "Accept-Encoding", "Content-Encoding": "", "Cache-Control": "public, max-age=3600", "Access-Control-Allow-Origin": "*"})
				if again.status != 304 || again.text != "" {
					t.Errorf("%s with If-None-Match %s: %d, %d bytes", path, known, again.status, len(again.text))
				}
			}
			if other := r.request("GET", path, http.Header{"Accept-Encoding": {encoding}, "If-None-Match": {`"other"`}}, ""); other.status != 200 {
				t.Errorf("%s with another tag: %d", path, other.status)
			}
		}
	}
	if len(tags) != 4 {
		t.Errorf("the forms of the files have the tags %v", tags)
	}
}
