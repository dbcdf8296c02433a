package api

import (
	"strings"
	"testing"
)

// Which headers can be read in one way only.
func TestMisframed(t *testing.T) {
	const v0, v1 = "HTTP/1.0", "HTTP/1.1"
	tests := []struct {
		proto, uri, header string
		want               string
	}{
		{v0, "/", "", ""},
		{v1, "/", "Host: x\r\n\r\n", ""},
		{v1, "/", "Host: x\n\n", ""},
		{v1, "/", "Host: x\r\nContent-Length: 1\r\n", ""},
		{v0, "/", "Content-Length: 1\r\n", ""},
		{v1, "/", "Host: x\r\nTransfer-Encoding: chunked\r\n", ""},
		{v1, "/", "Host: x\r\ntransfer-encoding:chunked  \r\n", ""},
		{v1, "/", "Host: x\r\nContent-Length: 1\r\nX-Content-Length: 2\r\n", ""},
		{v1, "/", "Host: x\r\nContent-Type: Content-Length: 1\r\nContent-Length: 1\r\n", ""},
		{v1, "/", "Host: x\r\nContent-Length: 1\r\nContent-Lengths: 1\r\nTransfer: x\r\n", ""},
		{v1, "/", "Host: x\r\nX: a\tb \xc3\xa9\r\n", ""},
		{v1, "/", "Hostess: a\r\nHost: b\r\nAuthorizations: c\r\nAuthorization: d\r\n", ""},

		{v1, "/", "Content-Length: 1\r\nX: y\r\ncontent-LENGTH: 1\r\n", twoLengths},
		{v1, "/", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", twoLengths},
		{v1, "/", "Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n", twoLengths},
		{v0, "/", "Transfer-Encoding: chunked\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding: identity\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding: Chunked\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding: xchunked\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding: gzip, chunked\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding: chunked, chunked\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding:\tchunked\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding: chunked;x\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding: \"chunked\"\r\n", unknownCoding},
		{v1, "/", "Transfer-Encoding:\r\n", unknownCoding},

		{v1, "/", "X: a\r\n b\r\n", foldedLine},
		{v1, "/", "X: a\r\n\tb\r\n", foldedLine},
		{v1, "/", "X: a\n Transfer-Encoding: chunked\n", foldedLine},
		{v1, "/", " X: a\r\n", foldedLine},
		{v1, "/", "X: a\x00b\r\n", controlCharacter},
		{v1, "/", "X\x00: a\r\n", controlCharacter},
		{v1, "/", "X: a\rb\r\n", controlCharacter},
		{v1, "/", "X: a\r\r\n", controlCharacter},
		{v1, "/", "X: a\rTransfer-Encoding: chunked\r\n", controlCharacter},
		{v1, "/", "Transfer-Encoding\x0b: chunked\r\n", controlCharacter},
		{v1, "/", "X: a\x7f\r\n", controlCharacter},
		{v1, "/a\rb", "Host: x\r\n", controlCharacter},
		{v1, "/a b", "Host: x\r\n", controlCharacter},
		{v1, "/\x00", "Host: x\r\n", controlCharacter},

		{v1, "/", "Host: x\r\n!#$%&'*+-.^_`|~: a\r\n", ""},
		{v1, "/", ": a\r\n", oddName},
		{v1, "/", "X\r\n", oddName},
		{v1, "/", "Content-Length : 1\r\n", oddName},
		{v1, "/", "X Y: a\r\n", oddName},
		{v1, "/", "X\xc3: a\r\n", oddName},

		{v1, "/", "Host: x\r\nhost: y\r\n", twoHosts},
		{v1, "/", "Host: x\r\nHost: x\r\n", twoHosts},
		{v1, "/", "Authorization: Bearer x\r\nauthorization: Bearer y\r\n", twoAuthorizations},
		{v1, "*", "Host: x\r\n", ""},
		{v1, "/a//b?c=d://e", "Host: x\r\n", ""},
		{v1, "http://x/a", "Host: x\r\n", ""},
		{v1, "HTTPS://X?a", "Host:\tx \r\n", ""},
		{v1, "http://y/a", "Host: x\r\n", twoHosts},
		{v1, "http://x@y/a", "Host: x\r\n", twoHosts},
		{v1, "http://x:80", "Host: x\r\n", twoHosts},
		{v1, "/", "", noHost},
		{v1, "http://x/a", "", noHost},
		{v1, "/", "Hosts: x\r\n", noHost},
		{v0, "http://x/a", "", twoHosts},
		{v1, "ftp://x/a", "Host: x\r\n", oddTarget},
		{v1, "//x/a", "Host: x\r\n", ""},
		{v1, "//x/a", "Host:\r\n", oddTarget},
		{v0, "//x/a", "", oddTarget},
		{v1, "a", "Host: x\r\n", oddTarget},
		{v1, "x:443", "Host: x\r\n", oddTarget},
		{v1, "", "Host: x\r\n", oddTarget},
		{"HTTP/1.2", "/", "Host: x\r\n", unknownVersion},
		{"HTTP/2.0", "/", "Host: x\r\n", unknownVersion},
		{"http/1.1", "/", "Host: x\r\n", unknownVersion},
		{"", "/", "Host: x\r\n", unknownVersion},
	}
	for _, tt := range tests {
		if got, last := misframed([]byte(tt.proto), []byte(tt.uri), []byte(tt.header)); got != tt.want || last != (tt.want != "" || tt.proto != v1 || strings.Contains(strings.ToLower(tt.header), "transfer-encoding:")) {
			t.Errorf("%s %q %q: %q %v, want %q", tt.proto, tt.uri, tt.header, got, last, tt.want)
		}
	}
}
