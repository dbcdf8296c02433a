package countdown_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/countdown"
	"github.com/mailgate/mailgate/internal/secret"
)

const ourSecret = "a secret of thirty-two bytes ..."

func tokens(t testing.TB, secret string) *countdown.Tokens {
	t.Helper()
	made, err := countdown.New([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestNew(t *testing.T) {
	for _, short := range []string{"", "fifteen bytes.."} {
		made, err := countdown.New([]byte(short))
		if made != nil || !errors.Is(err, secret.ErrTooShort) {
			t.Errorf("%d bytes of secret: %v", len(short), err)
		} else if short != "" && strings.Contains(err.Error(), short) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
	given := []byte("sixteen bytes...")
	if _, err := countdown.New(given); err != nil || string(given) != "sixteen bytes..." {
		t.Errorf("%v, and the secret is %q", err, given)
	}
}

// What goes in comes out, until the millisecond before it expires and on every server
// with the secret.
func TestSealAndOpen(t *testing.T) {
	ours, theirs := tokens(t, ourSecret), tokens(t, ourSecret)
	mailboxes := []string{"", "a@b", "alice@example.com", "丽@例子.example", "\x00\xff",
		strings.Repeat("v", 54), strings.Repeat("w", 55), // one block, and two
		strings.Repeat("x", 254), strings.Repeat("y", countdown.MaxMailbox)}
	for _, mailbox := range mailboxes {
		for _, expires := range []int64{math.MinInt64 + 1, -1, 0, 1, 1_700_000_000_000, math.MaxInt64} {
			token := ours.Seal(mailbox, expires)
			if got, err := theirs.Open(token, expires-1); got != mailbox || err != nil {
				t.Errorf("%d bytes, a millisecond before %d: %q, %v", len(mailbox), expires, got, err)
			}
			if got, err := theirs.Open(token, expires); got != "" || err != countdown.ErrInvalid {
				t.Errorf("%d bytes, at %d: %q, %v", len(mailbox), expires, got, err)
			}
			if len(token) > countdown.MaxLength {
				t.Errorf("%d bytes made a token of %d, over MaxLength", len(mailbox), len(token))
			}
			if i := strings.IndexFunc(token, special); i >= 0 {
				t.Errorf("token %s has %q, which a URL escapes", token, token[i])
			}
		}
	}
	if token := ours.Seal(strings.Repeat("z", countdown.MaxMailbox+1), 1); token != "" {
		t.Errorf("a key that is too long became %s", token)
	}
	if n := len(ours.Seal(mailboxes[len(mailboxes)-1], 1)); n != countdown.MaxLength {
		t.Errorf("the longest token has %d, MaxLength is %d", n, countdown.MaxLength)
	}
}

// People's pages hold tokens while the program is replaced by a newer one, and servers of two
// versions open each other's. The value was computed with another implementation of HKDF and
// AES.
func TestTokensStay(t *testing.T) {
	const token = "AQABAgMEBQYHCAkKCwwNDg8QERITFBUWF9AtP5HouVRnyCLfEF-YAXvFzm3d_VmDByCfiogVEIcnnlWaleZT8oj9Cl8g" +
		"AG6gdoAf1XBGM12cuKd7IDQrkSwiAsQERpsMrXkeeM7rYz6A"
	if got, err := tokens(t, ourSecret).Open(token, 1_699_999_999_999); got != "alice@example.com" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// special are all but the characters that stand for themselves anywhere in a URL.
func special(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
}

// Every way of being wrong has the one answer.
func TestOpenRefuses(t *testing.T) {
	ours := tokens(t, ourSecret)
	token := ours.Seal("alice@example.com", 2000)
	tests := map[string]string{
		"empty":                   "",
		"one character":           "A",
		"not base64":              strings.Repeat("!", len(token)),
		"the other alphabet":      strings.Repeat("+/", len(token)/2),
		"zeros":                   strings.Repeat("A", len(token)),
		"the version alone":       token[:2],
		"cut by one":              token[:len(token)-1],
		"cut by four":             token[:len(token)-4],
		"cut to less than a tag":  token[:20],
		"one more":                token + "A",
		"four more":               token + "AAAA",
		"padding":                 token + "=",
		"a line break at the end": token + "\n",
		"a line break inside":     token[:10] + "\r\n" + token[10:],
		"a space":                 " " + token,
		"twice":                   token + token,
		"too long":                strings.Repeat("A", countdown.MaxLength+1),
		"far too long":            strings.Repeat("A", 1<<20),
		"the address":             "alice@example.com",
		"another server's":        tokens(t, ourSecret+".").Seal("alice@example.com", 2000),
		"expired":                 ours.Seal("alice@example.com", 1000),
		"spare bits":              respelled(ours.Seal(strings.Repeat("x", 60), 2000)),
	}
	for name, try := range tests {
		if got, err := ours.Open(try, 1000); got != "" || err != countdown.ErrInvalid {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := ours.Open(token, 1000); got != "alice@example.com" || err != nil {
		t.Fatalf("the token itself: %q, %v", got, err)
	}
}

// respelled changes a bit of the last character that carries nothing, which it has
// where the bytes are not a multiple of three.
func respelled(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(token) - 1
	return token[:last] + string(alphabet[strings.IndexByte(alphabet, token[last])^1])
}

// A token with any one bit changed, the version's too, is refused.
func TestEveryBitCounts(t *testing.T) {
	ours := tokens(t, ourSecret)
	raw, err := base64.RawURLEncoding.DecodeString(ours.Seal("alice@example.com", 2000))
	if err != nil {
		t.Fatal(err)
	}
	for bit := range len(raw) * 8 {
		changed := slices.Clone(raw)
		changed[bit/8] ^= 1 << (bit % 8)
		if got, err := ours.Open(base64.RawURLEncoding.EncodeToString(changed), 1000); got != "" || err != countdown.ErrInvalid {
			t.Errorf("bit %d changed: %q, %v", bit, got, err)
		}
	}
}

// A token shows neither the address nor how long it is, and two of one mailbox have
// nothing in common but the version: over many, every bit after it is set half the time.
func TestTokensTellNothing(t *testing.T) {
	ours := tokens(t, ourSecret)
	const many = 4000
	var ones []int
	seen := map[string]bool{}
	for range many {
		token := ours.Seal("alice@example.com", 1_700_000_000_000)
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || seen[token] || bytes.Contains(raw, []byte("alice")) {
			t.Fatalf("token %s: %v, seen before: %t", token, err, seen[token])
		}
		seen[token] = true
		if ones == nil {
			ones = make([]int, len(raw)*8)
		}
		for bit := range ones {
			ones[bit] += int(raw[bit/8] >> (bit % 8) & 1)
		}
	}
	for bit, n := range ones[8:] {
		// Seven standard deviations: by chance once in a hundred thousand million bits.
		if off := math.Abs(float64(n) - many/2); off > 7*math.Sqrt(many)/2 {
			t.Errorf("bit %d after the version is set %d times of %d", bit, n, many)
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

func TestManyAtOnce(t *testing.T) {
	ours := tokens(t, ourSecret)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			mailbox := strings.Repeat("m", i)
			for range 50 {
				if got, err := ours.Open(ours.Seal(mailbox, 2), 1); got != mailbox || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}

// Refusals of one length take about the same time, whatever is wrong. A tenfold
// difference would be one that a caller can see; the median keeps the machine's
// hiccups out.
func TestRefusalsTakeTheSameTime(t *testing.T) {
	ours := tokens(t, ourSecret)
	token := ours.Seal("alice@example.com", 2000)
	last := "AA"
	if strings.HasSuffix(token, last) {
		last = "BB" // else it is the genuine one
	}
	tries := map[string]string{
		"expired":          ours.Seal("alice@example.com", 1000),
		"another server's": tokens(t, ourSecret+".").Seal("alice@example.com", 2000),
		"first byte":       "C" + token[1:],
		"last byte":        token[:len(token)-2] + last,
		"not base64":       strings.Repeat("!", len(token)),
	}
	slowest, fastest := time.Duration(0), time.Hour
	for name, try := range tries {
		took := make([]time.Duration, 500)
		for i := range took {
			start := time.Now()
			if _, err := ours.Open(try, 1000); err != countdown.ErrInvalid {
				t.Fatalf("%s: %v", name, err)
			}
			took[i] = time.Since(start)
		}
		slices.Sort(took)
		median := took[len(took)/2]
		slowest, fastest = max(slowest, median), min(fastest, median)
		t.Logf("%-17s %v", name, median)
	}
	if slowest > 10*fastest {
		t.Errorf("from %v to %v", fastest, slowest)
	}
}

func BenchmarkSeal(b *testing.B) {
	ours := tokens(b, ourSecret)
	b.ReportAllocs()
	for b.Loop() {
		ours.Seal("alice@example.com", 1_700_000_000_000)
	}
}

func BenchmarkOpen(b *testing.B) {
	ours := tokens(b, ourSecret)
	for name, token := range map[string]string{
		"genuine": ours.Seal("alice@example.com", 2),
		"expired": ours.Seal("alice@example.com", 1),
		"forged":  strings.Repeat("A", 140),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ours.Open(token, 1)
			}
		})
	}
}
