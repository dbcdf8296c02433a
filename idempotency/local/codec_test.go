package local

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/idempotency"
)

func record(expires int64, answer *idempotency.Answer) idempotency.Record {
	return idempotency.Record{
		Token: idempotency.Token([]byte("sixteen bytes ok")), Body: idempotency.Fingerprint{31: 7},
		Expires: expires, Answer: answer,
	}
}

func TestCodecKeepsRecords(t *testing.T) {
	answer := &idempotency.Answer{Status: 200, Header: []idempotency.Field{{Name: "A", Value: "b"}}, Body: []byte("{}")}
	for name, r := range map[string]idempotency.Record{
		"in flight":       record(1_800_000_000_000, nil),
		"done":            record(1_800_000_000_000, answer),
		"at the first ms": record(math.MinInt64, nil),
		"at the last ms":  record(math.MaxInt64, answer),
	} {
		t.Run(name, func(t *testing.T) {
			b := recordCodec{}.Append([]byte("before"), r)
			got, err := recordCodec{}.Parse(b[len("before"):])
			if err != nil || !reflect.DeepEqual(got, r) {
				t.Fatalf("%v, %v; want %v", got, err, r)
			}
		})
	}
}

func TestCodecRefuses(t *testing.T) {
	whole := recordCodec{}.Append(nil, record(1_800_000_000_000, nil))
	head := whole[:1+16+32]
	for name, b := range map[string][]byte{
		"nothing":         {},
		"another version": append([]byte{codecVersion + 1}, whole[1:]...),
		"a cut time":      whole[:len(whole)-1],
		"no time":         head,
		"a cut head":      head[:len(head)-1],
		"one byte more":   append(slices.Clone(whole), 0),
		"no token":        append(append([]byte{codecVersion}, make([]byte, 16)...), whole[17:]...),
		"a longer time":   append(slices.Clone(head), 0x82, 0),
		"no status":       idempotency.AppendAnswer(slices.Clone(whole), idempotency.Answer{}),
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := (recordCodec{}).Parse(b); err == nil {
				t.Fatalf("parsed %x as %v", b, r)
			}
		})
	}
}

// What is remembered is weighed with all that hangs on it.
func TestCodecWeighs(t *testing.T) {
	light := recordCodec{}.Weigh(record(1, nil))
	heavy := recordCodec{}.Weigh(record(1, &idempotency.Answer{
		Header: []idempotency.Field{{Name: "Name", Value: string(make([]byte, 1000))}}, Body: make([]byte, 5000),
	}))
	if light < 56 || heavy < light+6000 || heavy > light+6300 {
		t.Errorf("%d and %d bytes", light, heavy)
	}
}

// Whatever is on disk, Parse returns an error or the record whose bytes these are.
func FuzzParse(f *testing.F) {
	f.Add(recordCodec{}.Append(nil, record(1_800_000_000_000, nil)))
	f.Add(recordCodec{}.Append(nil, record(1, &idempotency.Answer{Status: 200, Body: []byte("{}")})))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := recordCodec{}.Parse(b)
		if err != nil {
			return
		}
		if again := (recordCodec{}).Append(nil, r); !bytes.Equal(again, b) {
			t.Fatalf("%x was parsed as %v, which is written %x", b, r, again)
		}
	})
}
