package countdown

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/secret"
)

const ourSecret = "a secret of thirty-two bytes ..."

func tokens(t testing.TB, secret string) *Tokens {
	t.Helper()
	return must.Get(New([]byte(secret)))(t)
}

func TestNew_ShortSecret_Fails(t *testing.T) {
	const short = "fifteen bytes.."
	if _, err := New([]byte(short)); !errors.Is(err, secret.ErrTooShort) || strings.Contains(err.Error(), short) {
		t.Error(err)
	}
}

// What is sealed can be opened until it expires, on every server with the secret.
func TestOpen_Sealed_UntilItExpires(t *testing.T) {
	ours, theirs := tokens(t, ourSecret), tokens(t, ourSecret)
	for _, mailbox := range []string{"", "alice@example.com", "丽@例子.example", "\x00\xff", strings.Repeat("y", maxText)} {
		for _, expires := range []int64{math.MinInt64 + 1, 0, 1_700_000_000_000, math.MaxInt64} {
			token := ours.Seal(mailbox, expires)
			if got, ok := theirs.Open(token, expires-1); got != mailbox || !ok {
				t.Errorf("%d bytes, a millisecond before %d: %q, %t", len(mailbox), expires, got, ok)
			}
			if got, ok := theirs.Open(token, expires); got != "" || ok {
				t.Errorf("%d bytes, at %d: %q, %t", len(mailbox), expires, got, ok)
			}
			if url.PathEscape(token) != token || len(token) > maxLength {
				t.Errorf("token %s has to be escaped or is too long", token)
			}
		}
	}
	if token := ours.Seal(strings.Repeat("z", maxText+1), 1); token != "" {
		t.Errorf("a text that is too long became %s", token)
	}
}

// Pages hold tokens while a server is upgraded. The value was computed with another
// implementation of HKDF and XChaCha20-Poly1305.
func TestOpen_KnownToken_Opens(t *testing.T) {
	const token = "AQABAgMEBQYHCAkKCwwNDg8QERITFBUWF92vo9a_a-KRbSIXv1zWMTYzNC_knUIjt_Q65-aoqc0GmL90oHiZTJ4qdAGJXV5V" +
		"dymhptFderZgRlgr7BUUo0oRr-vi2jDBizuN1vrWtAG5"
	if got, ok := tokens(t, ourSecret).Open(token, 1_699_999_999_999); got != "alice@example.com" || !ok {
		t.Errorf("%q, %t", got, ok)
	}
}

// Every invalid token has the same answer.
func TestOpen_Invalid_NotOK(t *testing.T) {
	ours := tokens(t, ourSecret)
	token := ours.Seal("alice@example.com", 2000)
	spare := []byte(ours.Seal(strings.Repeat("x", 60), 2000)) // its last character has bits that carry nothing
	spare[len(spare)-1]++
	for name, try := range map[string]string{
		"empty":              "",
		"one character":      "A",
		"not base64":         strings.Repeat("!", len(token)),
		"the other alphabet": strings.Repeat("+/", len(token)/2),
		"the version alone":  token[:2],
		"cut by one":         token[:len(token)-1],
		"one more":           token + "A",
		"padding":            token + "=",
		"a line break":       token[:10] + "\r\n" + token[10:],
		"twice":              token + token,
		"too long":           strings.Repeat("A", maxLength+1),
		"of another secret":  tokens(t, ourSecret+".").Seal("alice@example.com", 2000),
		"expired":            ours.Seal("alice@example.com", 1000),
		"spare bits":         string(spare),
	} {
		if got, ok := ours.Open(try, 1000); got != "" || ok {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
	raw := must.Get(base64.RawURLEncoding.DecodeString(token))(t)
	for bit := range len(raw) * 8 {
		changed := slices.Clone(raw)
		changed[bit/8] ^= 1 << (bit % 8)
		if got, ok := ours.Open(base64.RawURLEncoding.EncodeToString(changed), 1000); got != "" || ok {
			t.Errorf("bit %d changed: %q, %t", bit, got, ok)
		}
	}
}

// Refusals of one length take about the same time, whatever is wrong: a caller could see a tenfold
// difference. The median leaves out the machine's pauses.
func TestOpen_Invalid_TakesTheSameTime(t *testing.T) {
	ours := tokens(t, ourSecret)
	token := ours.Seal("alice@example.com", 1000)
	slowest, fastest := time.Duration(0), time.Hour
	for _, try := range []string{
		token, tokens(t, ourSecret+".").Seal("alice@example.com", 2000), "C" + token[1:], token[:len(token)-2] + "__", strings.Repeat("!", len(token)),
	} {
		took := make([]time.Duration, 500)
		for i := range took {
			start := time.Now()
			if text, ok := ours.Open(try, 1000); ok {
				t.Fatal(text)
			}
			took[i] = time.Since(start)
		}
		slices.Sort(took)
		median := took[len(took)/2]
		slowest, fastest = max(slowest, median), min(fastest, median)
	}
	if slowest > 10*fastest {
		t.Errorf("from %v to %v", fastest, slowest)
	}
}

// Two tokens of one mailbox have nothing in common but the version, and the length shows steps of
// 64 bytes only.
func TestSeal_Tokens_TellNothing(t *testing.T) {
	ours := tokens(t, ourSecret)
	seen := map[string]bool{}
	for range 1000 {
		raw := must.Get(base64.RawURLEncoding.DecodeString(ours.Seal("alice@example.com", 1_700_000_000_000)))(t)
		if bytes.Contains(raw, []byte("alice")) {
			t.Fatalf("%x", raw)
		}
		for part := range slices.Chunk(raw[1:], 8) {
			if seen[string(part)] {
				t.Fatalf("%x comes twice", part)
			}
			seen[string(part)] = true
		}
	}
	lengths := map[int]bool{}
	for n := range 55 {
		lengths[len(ours.Seal(strings.Repeat("x", n), 1))] = true
	}
	if len(lengths) != 1 {
		t.Errorf("addresses of 0 to 54 bytes make tokens of %v lengths", lengths)
	}
}

// Whatever comes in place of a token is not ok, unless Seal made it.
func FuzzOpen(f *testing.F) {
	ours := tokens(f, ourSecret)
	token := ours.Seal("alice@example.com", 2000)
	for _, seed := range []string{"", "A", token, token[:56], token + "\n", strings.Repeat("A", 140), "AQ", "\xff="} {
		f.Add(seed, int64(1000))
	}
	f.Fuzz(func(t *testing.T, try string, now int64) {
		got, ok := ours.Open(try, now)
		genuine := ok && got == "alice@example.com" && now < 2000
		if !genuine && (got != "" || ok) {
			t.Errorf("%q at %d: %q, %t", try, now, got, ok)
		}
	})
}
