package local

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/mailgate/mailgate/verify"
)

func codes(expires ...int64) verify.Codes {
	var all verify.Codes
	for i, at := range expires {
		all = append(all, verify.Kept{Hash: verify.Hash{0: byte(i), 15: 0x80}, Expires: at})
	}
	return all
}

func TestCodecKeepsCodes(t *testing.T) {
	for name, c := range map[string]verify.Codes{
		"one":             codes(1_800_000_000_000),
		"same moment":     codes(5, 5, 5),
		"before 1970":     codes(-86_400_000, -1, 0, 1),
		"as far as it is": codes(math.MinInt64/2, 0, math.MaxInt64/2),
		"all there are":   codes(slices.Repeat([]int64{1_800_000_000_000}, verify.MaxCodes)...),
	} {
		t.Run(name, func(t *testing.T) {
			b := codesCodec{}.Append([]byte("before"), c)
			got, err := codesCodec{}.Parse(b[len("before"):])
			if err != nil || !slices.Equal(got, c) {
				t.Fatalf("%v, %v; want %v", got, err, c)
			}
		})
	}
}

func TestCodecRefuses(t *testing.T) {
	whole := codesCodec{}.Append(nil, codes(1000, 2000))
	for name, b := range map[string][]byte{
		"nothing":         {},
		"no codes":        {codecVersion},
		"another version": append([]byte{codecVersion + 1}, whole[1:]...),
		"a cut hash":      whole[:len(whole)-1],
		"one byte more":   append(slices.Clone(whole), 0),
		"out of order":    codesCodec{}.Append(nil, codes(2000, 1000)),
		"a hash twice":    codesCodec{}.Append(nil, append(codes(1000), codes(1000)...)),
		"too many":        codesCodec{}.Append(nil, codes(slices.Repeat([]int64{9}, verify.MaxCodes+1)...)),
		"a longer time":   append([]byte{codecVersion, 0x82, 0}, make([]byte, 16)...),
		"an endless time": append([]byte{codecVersion}, bytes.Repeat([]byte{0xff}, 40)...),
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := (codesCodec{}).Parse(b); err == nil {
				t.Fatalf("parsed %x as %v", b, c)
			}
		})
	}
}

// Whatever is on disk, Parse returns an error or the codes whose bytes these are.
func FuzzParse(f *testing.F) {
	f.Add(codesCodec{}.Append(nil, codes(1_800_000_000_000, 1_800_000_060_000)))
	f.Add([]byte{codecVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := codesCodec{}.Parse(b)
		if err != nil {
			return
		}
		if again := (codesCodec{}).Append(nil, c); !bytes.Equal(again, b) {
			t.Fatalf("%x was parsed as %v, which is written %x", b, c, again)
		}
	})
}
