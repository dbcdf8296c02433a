package idempotency

import (
	"bytes"
	"slices"
	"testing"
)

func field(name, value string) []Field { return []Field{{Name: name, Value: value}} }

func TestAnswer_Encoded_ReadBackAlike(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, a := range map[string]Answer{
		"status alone":      {Status: 100},
		"every byte":        {Status: 422, Header: field("A", "b"), Body: every},
		"fields in order":   {Status: 200, Header: []Field{{"Link", "<b>"}, {"link", ""}, {"Link", "<a>, \"ü\"\t"}}, Body: []byte("{}")},
		"body like a field": {Status: 599, Body: []byte("\n{}\n")},
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
		b := r.encode()
		f.Add(b)
		f.Add(b[:20])                         // cut
		f.Add(append(bytes.Clone(b), 'x'))    // of an answer alone
		f.Add(append([]byte{9}, b[1:]...))    // another version
		f.Add(append([]byte{1, 0}, b[2:]...)) // no state
		f.Add(append([]byte{1, 9}, b[2:]...)) // an unknown state
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parse(b)
		if err != nil {
			return
		}
		if again := r.encode(); !bytes.Equal(again, b) || r.state > answered || len(r.answer) > 0 && r.state != answered {
			t.Fatalf("%x was parsed as %+v, which is written %x", b, r, again)
		}
	})
}

func TestParseAnswer_Damaged_Fails(t *testing.T) {
	for _, text := range []string{"", "damaged", "{}\n", `{"Status":99}` + "\n", `{"Status":600}` + "\n", `{"Status":200}`, `{"Status":200` + "\n"} {
		if a, err := parseAnswer([]byte(text)); err != errDamaged {
			t.Errorf("%q is %v, %v", text, a, err)
		}
	}
}
