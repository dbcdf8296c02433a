package api

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/mailer/address"
)

// A body that is accepted is read by encoding/json in the same way.
func FuzzReadObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":"b"}`, `{"a":"\u00e9\ud83d\ude00","d":{"x":"y","":""}}`, ` {"b" : "\"\\\/\b\f\n\r\t" } `,
		`{"a":"1","a":"2"}`, `{"A":"1"}`, `{"a":1}`, `{"a":"\ud800"}`, `{"d":{}}`, `{"d":{"k":"v","k":"w"}}`, "{\"a\":\"\xff\"}",
		"", " ", "null", ` null `, `{"a":null}`, `{"d":null}`, `{}{}`, `{"a":"b"`,
	} {
		f.Add([]byte(seed))
	}
	type object struct {
		A *string           `json:"a"`
		B *string           `json:"b"`
		D map[string]string `json:"d"`
	}
	reading := strict(address.Identity{})
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, want object
		untouched := bytes.Clone(body)
		err := readObject(body, &got, reading)
		if !bytes.Equal(body, untouched) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if p := problemOf(err); p.kind != badRequest || !utf8.ValidString(p.detail) {
				t.Fatalf("refused as %v", p)
			}
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		if _, err := decoder.Token(); err != io.EOF {
			t.Fatalf("there is more after the object: %v", err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read %v, encoding/json %v", got, want)
		}
		if got.A != nil && (!utf8.ValidString(*got.A) || strings.ContainsRune(*got.A, 0)) {
			t.Fatalf("%q passed", *got.A)
		}
	})
}

// A Host that counts as this machine's is no other name to any reader of URLs, and an origin that
// counts as its own is exactly that host.
func FuzzLoopbackHost(f *testing.F) {
	for _, seed := range []string{"localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]", "[::1]:1", "localhost.", "127.1", "localhost@evil.example", "localhost:80@evil", "[::1%25eth0]", "0x7f.1"} {
		f.Add(seed, "http://"+seed)
	}
	f.Fuzz(func(t *testing.T, host, origin string) {
		if !network.IsLoopbackHost(host) {
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
		if network.IsOriginOf(origin, host) {
			if from, err := url.Parse(origin); err != nil || !strings.EqualFold(from.Host, host) || from.Path != "" {
				t.Fatalf("%q is taken for a page of %q", origin, host)
			}
		}
	})
}

// What counts as JSON counts as JSON in every browser, which asks before it sends that to another
// site.
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
