package idempotency_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
)

func field(name, value string) []idempotency.Field {
	return []idempotency.Field{{Name: name, Value: value}}
}

func TestAnswersThatCanBeKept(t *testing.T) {
	most := bytes.Repeat([]byte("b"), idempotency.MaxAnswer-11)
	for name, tt := range map[string]struct {
		answer idempotency.Answer
		want   error
	}{
		"a status":           {idempotency.Answer{Status: 200}, nil},
		"the last status":    {idempotency.Answer{Status: 599}, nil},
		"no status":          {idempotency.Answer{}, idempotency.ErrAnswer},
		"a provisional one":  {idempotency.Answer{Status: 199}, idempotency.ErrAnswer},
		"beyond the last":    {idempotency.Answer{Status: 600}, idempotency.ErrAnswer},
		"a negative one":     {idempotency.Answer{Status: -200}, idempotency.ErrAnswer},
		"a field":            {idempotency.Answer{Status: 200, Header: field("Retry-After", "7")}, nil},
		"an empty value":     {idempotency.Answer{Status: 200, Header: field("A", "")}, nil},
		"every sign":         {idempotency.Answer{Status: 200, Header: field("!#$%&'*+-.^_`|~09azAZ", "ü\t")}, nil},
		"no name":            {idempotency.Answer{Status: 200, Header: field("", "a")}, idempotency.ErrAnswer},
		"a space in a name":  {idempotency.Answer{Status: 200, Header: field("A B", "a")}, idempotency.ErrAnswer},
		"a colon in a name":  {idempotency.Answer{Status: 200, Header: field("A:", "a")}, idempotency.ErrAnswer},
		"a bracket":          {idempotency.Answer{Status: 200, Header: field("A[", "a")}, idempotency.ErrAnswer},
		"an at sign":         {idempotency.Answer{Status: 200, Header: field("A@", "a")}, idempotency.ErrAnswer},
		"a slash":            {idempotency.Answer{Status: 200, Header: field("A/", "a")}, idempotency.ErrAnswer},
		"a foreign letter":   {idempotency.Answer{Status: 200, Header: field("Ü", "a")}, idempotency.ErrAnswer},
		"a line more":        {idempotency.Answer{Status: 200, Header: field("A", "a\r\nB: b")}, idempotency.ErrAnswer},
		"a NUL":              {idempotency.Answer{Status: 200, Header: field("A", "\x00")}, idempotency.ErrAnswer},
		"as long as may be":  {idempotency.Answer{Status: 200, Body: most}, nil},
		"a byte more":        {idempotency.Answer{Status: 200, Body: append(most, 'b')}, idempotency.ErrAnswer},
		"a field more":       {idempotency.Answer{Status: 200, Header: field("A", ""), Body: most}, idempotency.ErrAnswer},
		"the longest value":  {idempotency.Answer{Status: 200, Header: field("A", string(most[11:]))}, nil},
		"a longer value":     {idempotency.Answer{Status: 200, Header: field("A", string(most[10:]))}, idempotency.ErrAnswer},
		"fields without end": {idempotency.Answer{Status: 200, Header: slices.Repeat(field("A", ""), 6000)}, idempotency.ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.answer.Check(); !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			written := idempotency.AppendAnswer([]byte("before"), tt.answer)
			if tt.want == nil && len(written) > idempotency.MaxAnswer+len("before") {
				t.Fatalf("%d bytes", len(written))
			}
			got, err := idempotency.ParseAnswer(written[len("before"):])
			if !errors.Is(err, tt.want) || tt.want == nil && !same(got, tt.answer) {
				t.Fatalf("read back as %d %v %.99q, %v", got.Status, got.Header, got.Body, err)
			}
		})
	}
}

func TestParseAnswerRefuses(t *testing.T) {
	whole := idempotency.AppendAnswer(nil, idempotency.Answer{Status: 200, Header: field("Name", "value")})
	for name, b := range map[string][]byte{
		"nothing":            {},
		"a version alone":    whole[:1],
		"another version":    append([]byte{2}, whole[1:]...),
		"a cut value":        whole[:len(whole)-1],
		"a cut name":         whole[:6],
		"a longer status":    {1, 0xc8, 0x81, 0x00, 0},
		"a longer number":    {1, 0xc8, 0x01, 0x80, 0x00},
		"an endless status":  append([]byte{1}, bytes.Repeat([]byte{0xff}, 20)...),
		"a huge status":      {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0},
		"fields without end": {1, 0xc8, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"a name without end": {1, 0xc8, 0x01, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 'a'},
	} {
		if a, err := idempotency.ParseAnswer(b); !errors.Is(err, idempotency.ErrAnswer) || a.Status != 0 {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

// Whatever is in a store, ParseAnswer returns an error or the answer whose bytes these are.
func FuzzParseAnswer(f *testing.F) {
	f.Add(idempotency.AppendAnswer(nil, idempotency.Answer{Status: 200, Header: field("Name", "value"), Body: []byte("{}")}))
	f.Add([]byte{1, 0xc8, 0x01, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := idempotency.ParseAnswer(b)
		if err != nil {
			return
		}
		if again := idempotency.AppendAnswer(nil, a); !bytes.Equal(again, b) {
			t.Fatalf("%x was parsed as %v, which is written %x", b, a, again)
		}
	})
}

func same(a, b idempotency.Answer) bool {
	return a.Status == b.Status && slices.Equal(a.Header, b.Header) && bytes.Equal(a.Body, b.Body)
}
