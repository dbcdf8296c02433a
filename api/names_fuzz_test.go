package api

import (
	"mime"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// A path is decoded as the standard library does it, or refused as there.
func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{"a@example.com", "a%40b", "%", "%4", "%zz", "%2540", "a+b", "%00", "%C3%BC"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := unescape([]byte(text))
		want, err := url.PathUnescape(text)
		if ok != (err == nil) || got != want {
			t.Fatalf("%q: %q, %v; want %q, %v", text, got, ok, want, err)
		}
	})
}

// A Host that counts as this machine's is no other name to any reader of URLs, and an
// origin that counts as its own is that very host.
func FuzzLoopbackHost(f *testing.F) {
	for _, seed := range []string{"localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]", "[::1]:1", "localhost.", "127.1", "localhost@evil.example", "localhost:80@evil", "[::1%25eth0]", "0x7f.1"} {
		f.Add(seed, "http://"+seed)
	}
	f.Fuzz(func(t *testing.T, host, origin string) {
		if !isLoopbackHost(host) {
			return
		}
		read, err := url.Parse("http://" + host + "/")
		if err != nil || read.Host != host || read.User != nil {
			t.Fatalf("%q is read as %v, %v", host, read, err)
		}
		at, err := netip.ParseAddr(read.Hostname())
		if !strings.EqualFold(read.Hostname(), "localhost") && (err != nil || !at.IsLoopback()) {
			t.Fatalf("%q is another machine's: %s", host, read.Hostname())
		}
		if isOriginOf(origin, host) {
			if from, err := url.Parse(origin); err != nil || !strings.EqualFold(from.Host, host) || from.Path != "" {
				t.Fatalf("%q is taken for a page of %q", origin, host)
			}
		}
	})
}

// What counts as JSON is that to everybody: browsers ask before they send it to another
// site, and would not if they read another type.
func FuzzContentType(f *testing.F) {
	for _, seed := range []string{"application/json", "Application/JSON; charset=UTF-8", `application/json;charset="utf-8"`, "application/json; charset=latin1", "text/plain;application/json", "application/json;", "application/json, text/plain", "application/json;charset=utf-8;x=y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if !isJSON([]byte(header)) {
			return
		}
		kind, parameters, err := mime.ParseMediaType(header)
		charset, has := parameters["charset"]
		if err != nil || kind != jsonType || has && !strings.EqualFold(charset, "utf-8") || len(parameters) > 1 {
			t.Fatalf("%q is %q %v, %v", header, kind, parameters, err)
		}
	})
}

// Each of the keys that are read opens with its secret and no other, and an error says
// nothing of what was written.
func FuzzParseKeys(f *testing.F) {
	for _, seed := range []string{"a:b", "web:s3cret,ops:0ther", " a:b , c:d ", "a", ":b", "a:b,a:c", "a:b,c:b", "a:b:c", "a:\x00", ",", "a:b,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err != nil {
			if rest := strings.TrimLeft(strings.TrimPrefix(err.Error(), "key "), "0123456789"); !strings.HasPrefix(rest, " must be ") &&
				!strings.HasPrefix(rest, " needs a ") && !strings.HasPrefix(rest, " has ") || len(rest) > 90 || !keys.IsZero() {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if keys.IsZero() {
			return
		}
		for _, pair := range strings.Split(text, ",") {
			name, secret, _ := strings.Cut(strings.TrimSpace(pair), ":")
			if found, ok := keys.find([]byte(secret)); !ok || found != name {
				t.Fatalf("%q opens as %q, %v", pair, found, ok)
			}
			if _, ok := keys.find([]byte(secret + " ")); ok {
				t.Fatalf("more than %q opens", secret)
			}
		}
	})
}
