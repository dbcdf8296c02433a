package idempotency

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/internal/secret"
)

const ourSecret = "sixteen bytes of chance, or more"

func fingerprint(t testing.TB, of, route, body string) Fingerprint {
	t.Helper()
	f, err := NewFingerprinter([]byte(of))
	if err != nil {
		t.Fatal(err)
	}
	return f.Of(route, []byte(body))
}

// The value was computed with another implementation of HKDF and HMAC.
func TestFingerprint_KnownRequest_KnownValue(t *testing.T) {
	got := fingerprint(t, ourSecret, "POST /send-code", `{"email":"alice@example.com"}`)
	if want := "dea26aebed3e981a1340c0e4d0f12fc5"; hex.EncodeToString(got[:]) != want {
		t.Errorf("%x, want %s", got, want)
	}
}

func TestFingerprint_AnyOtherInput_Differs(t *testing.T) {
	is := fingerprint(t, ourSecret, "POST /send-code", "{}")
	for name, other := range map[string]Fingerprint{
		"another body":   fingerprint(t, ourSecret, "POST /send-code", "{ }"),
		"another route":  fingerprint(t, ourSecret, "POST /other", "{}"),
		"another border": fingerprint(t, ourSecret, "POST /send-code{", "}"),
		"another secret": fingerprint(t, ourSecret+"!", "POST /send-code", "{}"),
	} {
		if other == is {
			t.Errorf("%s makes no difference", name)
		}
	}
	if _, err := NewFingerprinter([]byte("fifteen bytes..")); !errors.Is(err, secret.ErrTooShort) {
		t.Errorf("a short secret: %v", err)
	}
}
