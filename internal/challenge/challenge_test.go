package challenge_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/internal/must"
)

const (
	now   = int64(1_795_176_000_000)
	ours  = "sixteen bytes of chance, or more"
	alice = "alice@example.com"
)

func issuer(t testing.TB, of string, turnstile *challenge.Turnstile) *challenge.Issuer {
	return must.Get(challenge.New([]byte(of), turnstile))(t)
}

func whom(mailbox, client string) challenge.For {
	c, _ := netip.ParseAddr(client)
	return challenge.For{Mailbox: mailbox, Client: c}
}

// solve finds the number, and changes the solution before it is a token.
func solve(t testing.TB, p challenge.Proof, change func(map[string]any)) string {
	t.Helper()
	for n := range p.MaxNumber + 1 {
		if sum := sha256.Sum256([]byte(p.Salt + strconv.Itoa(n))); hex.EncodeToString(sum[:]) == p.Challenge {
			s := map[string]any{"algorithm": p.Algorithm, "challenge": p.Challenge, "number": n, "salt": p.Salt, "signature": p.Signature, "took": 12}
			if change != nil {
				change(s)
			}
			return base64.StdEncoding.EncodeToString(must.Get(json.Marshal(s))(t))
		}
	}
	t.Fatal("no number solves it")
	return ""
}

func TestCheck_Proof_ForOneMailboxVisitorAndTime(t *testing.T) {
	i := issuer(t, ours, nil)
	offer := i.Offer(whom(alice, "203.0.113.7"), now, true)
	if offer.Turnstile != nil {
		t.Error("Turnstile is offered, and is not set up")
	}
	token := solve(t, offer.ALTCHA, nil)
	for name, tt := range map[string]struct {
		by   *challenge.Issuer
		whom challenge.For
		at   int64
		ok   bool
	}{
		"itself":             {i, whom(alice, "203.0.113.7"), now, true},
		"another node":       {issuer(t, ours, nil), whom(alice, "203.0.113.7"), now, true},
		"just in time":       {i, whom(alice, "203.0.113.7"), now + challenge.Life - 1, true},
		"expired":            {i, whom(alice, "203.0.113.7"), now + challenge.Life, false},
		"another mailbox":    {i, whom("bob@example.com", "203.0.113.7"), now, false},
		"another visitor":    {i, whom(alice, "203.0.113.8"), now, false},
		"an unknown visitor": {i, whom(alice, ""), now, false},
		"another secret":     {issuer(t, "sixteen bytes of chance, or less", nil), whom(alice, "203.0.113.7"), now, false},
	} {
		hash, kind, err := tt.by.Check(t.Context(), token, tt.whom, tt.at)
		if kind != "altcha" || (err == nil) != tt.ok || (hash != "") != tt.ok || err != nil && !errors.Is(err, challenge.ErrUnsolved) {
			t.Errorf("%s: %q, %s, %v", name, hash, kind, err)
		}
	}
	six := solve(t, i.Offer(whom(alice, "2001:db8::1"), now, true).ALTCHA, nil)
	if _, _, err := i.Check(t.Context(), six, whom(alice, "2001:db8::2"), now); err != nil {
		t.Errorf("another address of one visitor's network: %v", err)
	}
}

// A token has one hash however it is spelled, and no part of it can be changed: not the salt, into which digits of the
// number could move, not the time in it.
func TestCheck_AlteredProof_Unsolved(t *testing.T) {
	i := issuer(t, ours, nil)
	p := i.Offer(whom(alice, ""), now, true).ALTCHA
	hash, _, err := i.Check(t.Context(), solve(t, p, nil), whom(alice, ""), now)
	other, _, _ := i.Check(t.Context(), solve(t, p, func(s map[string]any) { s["took"], s["more"] = 99, true }), whom(alice, ""), now)
	if err != nil || hash != other || len(hash) != 32 {
		t.Errorf("one challenge has the hashes %s and %s, %v", hash, other, err)
	}
	for name, change := range map[string]func(s map[string]any){
		"another number": func(s map[string]any) { s["number"] = s["number"].(int) + 1 },
		"no number":      func(s map[string]any) { delete(s, "number") },
		"a fraction":     func(s map[string]any) { s["number"] = 0.5 },
		"another hash":   func(s map[string]any) { s["challenge"] = strings.Repeat("0", 64) },
		"no signature":   func(s map[string]any) { s["signature"] = "" },
		"a later time":   func(s map[string]any) { s["salt"] = strings.Replace(s["salt"].(string), "expires=", "expires=9", 1) },
		"no time":        func(s map[string]any) { s["salt"], _, _ = strings.Cut(s["salt"].(string), "?") },
		"a digit moved into the salt": func(s map[string]any) {
			digits := strconv.Itoa(s["number"].(int))
			s["salt"] = s["salt"].(string) + digits[:1]
			s["number"], _ = strconv.Atoi("0" + digits[1:])
		},
		"digits moved into the time": func(s map[string]any) {
			s["salt"] = strings.TrimSuffix(s["salt"].(string), "&") + strconv.Itoa(s["number"].(int))
			s["number"] = 0
		},
	} {
		if hash, _, err := i.Check(t.Context(), solve(t, p, change), whom(alice, ""), now); hash != "" || !errors.Is(err, challenge.ErrUnsolved) {
			t.Errorf("%s: %q, %v", name, hash, err)
		}
	}
	for _, rubbish := range []string{"x", "eyJ", "e30=", "bnVsbA==", "W10=", "1x0.2x0", strings.Repeat("A", 9000), "\x00"} {
		if hash, _, err := i.Check(t.Context(), rubbish, whom(alice, ""), now); hash != "" || !errors.Is(err, challenge.ErrUnsolved) {
			t.Errorf("%.20q: %q, %v", rubbish, hash, err)
		}
	}
}

func TestOffer_EachTime_AnotherOne(t *testing.T) {
	i := issuer(t, ours, nil)
	one, two := i.Offer(whom(alice, ""), now, true).ALTCHA, i.Offer(whom(alice, ""), now, true).ALTCHA
	if one.Salt == two.Salt || one.Challenge == two.Challenge || one.Signature == two.Signature || one.MaxNumber != 100_000 {
		t.Errorf("%+v, %+v", one, two)
	}
	if _, err := challenge.New([]byte("short"), nil); err == nil {
		t.Error("a short secret is taken")
	}
}

func BenchmarkCheck_Proof(b *testing.B) {
	i := issuer(b, ours, nil)
	token := solve(b, i.Offer(whom(alice, ""), now, true).ALTCHA, nil)
	for b.Loop() {
		if _, _, err := i.Check(b.Context(), token, whom(alice, ""), now); err != nil {
			b.Fatal(err)
		}
	}
}
