package idempotency

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/mailgate/mailgate/secret"
)

const ourSecret = "sixteen bytes of chance, or more"

func fingerprinter(t testing.TB, of string) *Fingerprinter {
	t.Helper()
	f, err := NewFingerprinter([]byte(of))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The value was computed with another implementation of HKDF and HMAC.
func TestFingerprint_KnownValue(t *testing.T) {
	got := fingerprinter(t, ourSecret).Of("POST /send-code", []byte(`{"email":"alice@example.com"}`))
	if want := "dea26aebed3e981a1340c0e4d0f12fc5"; hex.EncodeToString(got[:]) != want {
		t.Errorf("%x, want %s", got, want)
	}
}

func TestFingerprint_BoundToEverything(t *testing.T) {
	f := fingerprinter(t, ourSecret)
	is := f.Of("POST /send-code", []byte("{}"))
	for name, other := range map[string]Fingerprint{
		"another body":   f.Of("POST /send-code", []byte("{ }")),
		"another route":  f.Of("POST /other", []byte("{}")),
		"another border": f.Of("POST /send-code{", []byte("}")),
		"another secret": fingerprinter(t, ourSecret+"!").Of("POST /send-code", []byte("{}")),
	} {
		if other == is {
			t.Errorf("%s makes no difference", name)
		}
	}
	if again := fingerprinter(t, ourSecret).Of("POST /send-code", []byte("{}")); again != is {
		t.Error("the same request has two fingerprints")
	}
}

func TestNewFingerprinter_ShortSecret_Fails(t *testing.T) {
	for _, short := range []string{"", "fifteen bytes.."} {
		if f, err := NewFingerprinter([]byte(short)); f != nil || !errors.Is(err, secret.ErrTooShort) {
			t.Errorf("%d bytes: %v", len(short), err)
		}
	}
	fingerprinter(t, "sixteen bytes...")
}
