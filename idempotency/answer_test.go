package idempotency

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func field(name, value string) []Field { return []Field{{Name: name, Value: value}} }

func TestAnswer_Encode(t *testing.T) {
	most := bytes.Repeat([]byte("b"), MaxAnswer-3)
	for name, tt := range map[string]struct {
		answer Answer
		want   error
	}{
		"status alone":      {Answer{Status: 200}, nil},
		"last status":       {Answer{Status: 599}, nil},
		"no status":         {Answer{}, ErrAnswer},
		"provisional":       {Answer{Status: 199}, ErrAnswer},
		"beyond the last":   {Answer{Status: 600}, ErrAnswer},
		"negative":          {Answer{Status: -200}, ErrAnswer},
		"field":             {Answer{Status: 200, Header: field("Retry-After", "7")}, nil},
		"fields in order":   {Answer{Status: 200, Header: []Field{{"Link", "<b>"}, {"link", ""}, {"Link", "<a>, \"ü\"\t"}}, Body: []byte("{}")}, nil},
		"every sign":        {Answer{Status: 200, Header: field("!#$%&'*+-.^_`|~09azAZ", "ü\t")}, nil},
		"body like a field": {Answer{Status: 599, Body: []byte("\x04Link\x03<b>")}, nil},
		"no name":           {Answer{Status: 200, Header: field("", "a")}, ErrAnswer},
		"space in name":     {Answer{Status: 200, Header: field("A B", "a")}, ErrAnswer},
		"colon in name":     {Answer{Status: 200, Header: field("A:", "a")}, ErrAnswer},
		"bracket in name":   {Answer{Status: 200, Header: field("A[", "a")}, ErrAnswer},
		"letter of another": {Answer{Status: 200, Header: field("Ü", "a")}, ErrAnswer},
		"line break":        {Answer{Status: 200, Header: field("A", "a\r\nB: b")}, ErrAnswer},
		"NUL":               {Answer{Status: 200, Header: field("A", "\x00")}, ErrAnswer},
		"longest":           {Answer{Status: 200, Body: most}, nil},
		"one byte more":     {Answer{Status: 200, Body: append(most, 'b')}, ErrAnswer},
		"one field more":    {Answer{Status: 200, Header: field("A", ""), Body: most}, ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := tt.answer.encode()
			if !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			if err != nil {
				return
			}
			got, err := parseAnswer(written)
			if err != nil || len(written) > MaxAnswer || !same(got, tt.answer) {
				t.Fatalf("read back as %d %v %.99q, %v", got.Status, got.Header, got.Body, err)
			}
		})
	}
}

func same(a, b Answer) bool {
	return a.Status == b.Status && slices.Equal(a.Header, b.Header) && bytes.Equal(a.Body, b.Body)
}

func TestParseAnswer_Damaged_Fails(t *testing.T) {
	whole, _ := Answer{Status: 200, Header: field("Name", "value")}.encode()
	for name, b := range map[string][]byte{
		"nothing":            {},
		"cut value":          whole[:len(whole)-1],
		"cut name":           whole[:5],
		"longer status":      {0xc8, 0x81, 0x00, 0},
		"longer number":      {0xc8, 0x01, 0x80, 0x00},
		"endless status":     bytes.Repeat([]byte{0xff}, 20),
		"huge status":        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0},
		"fields without end": {0xc8, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"name without end":   {0xc8, 0x01, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 'a'},
	} {
		if a, err := parseAnswer(b); err != errDamaged || a.Status != 0 {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

// Whatever is in a store, parsing returns an error or what is written by these bytes.
func FuzzParseRecord(f *testing.F) {
	answer, _ := Answer{Status: 200, Header: field("Name", "value"), Body: []byte("{}")}.encode()
	for _, r := range []record{
		{state: abandoned, token: token{1}, expires: 5},
		{state: begun, token: token{1}, body: Fingerprint{2}, lease: 5, expires: 500},
		{state: handedOver, token: token{1}, lease: 500, expires: 500},
		{state: answered, token: token{1}, expires: 1 << 50, answer: answer},
	} {
		f.Add(r.encode())
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
		if again, err := a.encode(); err != nil || !bytes.Equal(again, r.answer) {
			t.Fatalf("%x was parsed as %+v, which is written %x, %v", r.answer, a, again, err)
		}
	})
}
