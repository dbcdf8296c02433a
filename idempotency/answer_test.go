package idempotency

import (
	"bytes"
	"slices"
	"testing"
)

func field(name, value string) []Field { return []Field{{Name: name, Value: value}} }

func TestAnswer_ComesBackByteForByte(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, a := range map[string]Answer{
		"status alone":      {Status: 204},
		"every byte":        {Status: 422, Header: field("A", string(every)), Body: every},
		"fields in order":   {Status: 200, Header: []Field{{"Link", "<b>"}, {"link", ""}, {"Link", "<a>, \"ü\"\t"}}, Body: []byte("{}")},
		"body like a field": {Status: 599, Body: []byte("\x04Link\x03<b>")},
	} {
		if got, err := parseAnswer(a.encode()); err != nil || got.Status != a.Status || !slices.Equal(got.Header, a.Header) || !bytes.Equal(got.Body, a.Body) {
			t.Errorf("%s: read back as %d %v %.99q, %v", name, got.Status, got.Header, got.Body, err)
		}
	}
}

// Whatever is in a store, parsing returns an error or what is written by these bytes.
func FuzzParseRecord(f *testing.F) {
	answer := Answer{Status: 200, Header: field("Name", "value"), Body: []byte("{}")}.encode()
	for _, r := range []record{
		{state: abandoned, token: token{1}, expires: 5},
		{state: begun, token: token{1}, body: Fingerprint{2}, lease: 5, expires: 500},
		{state: handedOver, token: token{1}, lease: 500, expires: 500},
		{state: answered, token: token{1}, expires: 1 << 50, answer: answer},
	} {
		f.Add(r.encode())
	}
	const head, end = "\x01\x04" + "0123456789abcdef0123456789abcdef", "\x05"
	for _, damaged := range []string{
		"\x02" + head[1:] + end, "\x01\x05" + head[2:] + end, "\x01\x00" + head[2:] + end, head[:10], head[:30], head,
		"\x01\x02" + head[2:] + end + "\x06", "\x01\x02" + head[2:] + end + "\x80\x00", "\x01\x01" + head[2:] + end + "x",
		head + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		head + end + "\xc8\x81\x00\x00", head + end + "\xc8\x01\xff\xff\xff\xff\x0f", head + end + "\xc8\x01\x01\xff\xff\x0fa", head + end + "\x01\x00",
	} {
		f.Add([]byte(damaged))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parse(b)
		if err != nil {
			return
		}
		if again := r.encode(); !bytes.Equal(again, b) {
			t.Fatalf("%x was parsed as %+v, which is written %x", b, r, again)
		}
		a, err := parseAnswer(r.answer)
		if err != nil {
			return
		}
		if again := a.encode(); !bytes.Equal(again, r.answer) {
			t.Fatalf("%x was parsed as %+v, which is written %x", r.answer, a, again)
		}
	})
}
