package verify_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mailgate/mailgate/verify"
)

func draw(n int) string { return string([]byte{byte(n >> 16), byte(n >> 8), byte(n)}) }

// Which draw becomes which code.
func TestNewCode(t *testing.T) {
	tests := []struct {
		random string
		want   string
	}{
		{draw(0), "000000"},
		{draw(7), "000007"},
		{draw(482913), "482913"},
		{draw(999_999), "999999"},
		{draw(1_000_000), "000000"},
		{draw(15_999_999), "999999"},
		{draw(16_000_000) + draw(1), "000001"},
		{draw(1<<24-1) + draw(16_777_000) + draw(2_000_003), "000003"},
	}
	for _, tt := range tests {
		code, err := verify.NewCode(iotest.OneByteReader(strings.NewReader(tt.random)))
		if err != nil || code != tt.want {
			t.Errorf("%x: %q, %v, want %q", tt.random, code, err, tt.want)
		}
	}
}

// A source that fails makes no code.
func TestNewCodeWithoutChance(t *testing.T) {
	broken := errors.New("no entropy")
	if code, err := verify.NewCode(iotest.ErrReader(broken)); code != "" || !errors.Is(err, broken) {
		t.Errorf("a broken source: %q, %v", code, err)
	}
	if code, err := verify.NewCode(strings.NewReader("ab")); code != "" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a short source: %q, %v", code, err)
	}
	if code, err := verify.NewCode(bytes.NewReader(bytes.Repeat([]byte{0xff}, 10_000))); code != "" || err == nil {
		t.Errorf("a source that is stuck: %q, %v", code, err)
	}
}

// Of all draws there are, each code gets exactly as many as any other. The thirds show
// it without drawing 16 million times: every code's 16 draws lie a million apart.
func TestEveryCodeIsAsLikely(t *testing.T) {
	for _, n := range []int{0, 1, 333_333, 727_215, 727_216, 777_215, 777_216, 999_999} {
		want, _ := verify.NewCode(strings.NewReader(draw(n)))
		for k := range 16 {
			if code, err := verify.NewCode(strings.NewReader(draw(n + k*1_000_000))); code != want || err != nil {
				t.Errorf("draw %d: %q, %v, want %q", n+k*1_000_000, code, err, want)
			}
		}
		if beyond := n + 16_000_000; beyond < 1<<24 {
			if code, err := verify.NewCode(strings.NewReader(draw(beyond))); err == nil {
				t.Errorf("draw %d, which is one too many, became %q", beyond, code)
			}
		}
	}
}

// Digits are evenly spread in every place, by a chi-square test over a fixed source: 9
// degrees of freedom, and the limit is passed by chance once in a hundred thousand.
func TestDigitsAreEvenlySpread(t *testing.T) {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], 20261120)
	source := rand.NewChaCha8(seed)
	const codes, limit = 60_000, 39.3
	var counts [verify.Digits][10]int
	for range codes {
		code, err := verify.NewCode(source)
		if err != nil || len(code) != verify.Digits {
			t.Fatalf("%q, %v", code, err)
		}
		for place, digit := range code {
			counts[place][digit-'0']++
		}
	}
	for place, digits := range counts {
		sum := 0.0
		for _, n := range digits {
			d := float64(n) - codes/10
			sum += d * d / (codes / 10)
		}
		if sum > limit {
			t.Errorf("place %d: chi-square %.1f, over %.1f: %v", place, sum, limit, digits)
		}
	}
}
