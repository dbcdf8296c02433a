package verify_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/secret"
	"github.com/mailgate/mailgate/verify"
)

const ourSecret = "sixteen bytes of chance, or more"

func hasher(t testing.TB, of string) *verify.Hasher {
	t.Helper()
	h, err := verify.NewHasher([]byte(of))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Hashes are on record while the program is replaced by a newer one, so they stay as they
// are. The value was computed with another implementation of HKDF and HMAC.
func TestHashStays(t *testing.T) {
	got := hasher(t, ourSecret).Hash("Alice@example.com", "482913")
	if want := "ed7feae5f8b2faebf8d7e7e09829dc35"; hex.EncodeToString(got[:]) != want {
		t.Errorf("%x, want %s", got, want)
	}
}

func TestHashIsBoundToAll(t *testing.T) {
	h := hasher(t, ourSecret)
	is := h.Hash("alice@example.com", "482913")
	for name, other := range map[string]verify.Hash{
		"another code":    h.Hash("alice@example.com", "482914"),
		"another address": h.Hash("carol@example.com", "482913"),
		"a tag":           h.Hash("alice+x@example.com", "482913"),
		"a dot":           h.Hash("a.lice@example.com", "482913"),
		"another secret":  hasher(t, ourSecret+"!").Hash("alice@example.com", "482913"),
		"another border":  h.Hash("alice@example.com4", "82913"),
		"no border":       h.Hash("alice@example.com482913", ""),
		"a Kelvin sign":   h.Hash("alice@example.\u212aom", "482913"),
	} {
		if other == is {
			t.Errorf("%s makes no difference", name)
		}
	}
	if again := h.Hash("Alice@EXAMPLE.com", "482913"); again != is || h.Hash("AZ@example.com", "1") != h.Hash("az@example.com", "1") {
		t.Error("letter case makes a difference")
	}
	if h.Hash("k@example.com", "482913") == h.Hash("\u212a@example.com", "482913") {
		t.Error("a Kelvin sign is taken for a k")
	}
}

func TestSecretsThatWillNotDo(t *testing.T) {
	for _, short := range []string{"", "fifteen bytes.."} {
		h, err := verify.NewHasher([]byte(short))
		if h != nil || !errors.Is(err, secret.ErrTooShort) || short != "" && strings.Contains(err.Error(), short) {
			t.Errorf("%d bytes: %v, %v", len(short), h, err)
		}
	}
	hasher(t, "sixteen bytes...")
}
