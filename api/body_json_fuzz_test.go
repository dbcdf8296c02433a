package api

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"testing"
	"unicode/utf8"

	"github.com/mailgate/mailgate/api/wire"
)

// What the reader accepts, encoding/json reads the same way.
func FuzzReadObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":"b"}`, `{"a":"\u00e9\ud83d\ude00","d":{"x":"y","":""}}`, ` {"b" : "\"\\\/\b\f\n\r\t" } `,
		`{"a":"1","a":"2"}`, `{"A":"1"}`, `{"a":1}`, `{"a":"\ud800"}`, `{"d":{}}`, `{"d":{"k":"v","k":"w"}}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got struct {
			A, B text
			D    map[string]string
		}
		untouched := bytes.Clone(body)
		err := readObject(body, []field{{name: "a", text: &got.A}, {name: "b", text: &got.B}, {name: "d", all: &got.D}})
		if !bytes.Equal(body, untouched) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if problemOf(err).kind != badRequest {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		var want struct {
			A *string           `json:"a"`
			B *string           `json:"b"`
			D map[string]string `json:"d"`
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		if _, err := decoder.Token(); err != io.EOF {
			t.Fatalf("there is more after the object: %v", err)
		}
		if !same(got.A, want.A) || !same(got.B, want.B) || !maps.Equal(got.D, want.D) {
			t.Fatalf("read %v, encoding/json %v", got, want)
		}
		if !utf8.ValidString(got.A.value) || bytes.IndexByte([]byte(got.A.value), 0) >= 0 {
			t.Fatalf("%q passed", got.A.value)
		}
	})
}

func same(got text, want *string) bool {
	if want == nil {
		return !got.given
	}
	return got.given && got.value == *want
}

// What is written is JSON again, whatever the text.
func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"\\\x00\x1f\x7f", "é😀\u2028", "\xff\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		var got string
		if err := json.Unmarshal(wire.Encode(given), &got); err != nil {
			t.Fatal(err)
		}
		if want := string(bytes.ToValidUTF8([]byte(given), []byte("\ufffd"))); utf8.ValidString(given) && got != want || !utf8.ValidString(got) {
			t.Fatalf("%q came back as %q", given, got)
		}
	})
}
