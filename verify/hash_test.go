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

// of is a recipient that a hash is made for.
func of(address, purpose string) verify.Recipient {
	return verify.Recipient{Address: address, Purpose: purpose}
}

// Hashes are on record while the program is replaced by a newer one, so they stay as they
// are. The values were computed with another implementation of HKDF and HMAC.
func TestHashStays(t *testing.T) {
	for purpose, want := range map[string]string{
		"":        "ed7feae5f8b2faebf8d7e7e09829dc35",
		"sign-up": "e78a6d473a26cc9ff22697cb7ba93af7",
	} {
		if got := hasher(t, ourSecret).Hash(of("Alice@example.com", purpose), "482913"); hex.EncodeToString(got[:]) != want {
			t.Errorf("for the purpose %q: %x, want %s", purpose, got, want)
		}
	}
}

func TestHashIsBoundToAll(t *testing.T) {
	h := hasher(t, ourSecret)
	is := h.Hash(of("alice@example.com", "sign-up"), "482913")
	for name, other := range map[string]verify.Hash{
		"another code":    h.Hash(of("alice@example.com", "sign-up"), "482914"),
		"another address": h.Hash(of("carol@example.com", "sign-up"), "482913"),
		"a tag":           h.Hash(of("alice+x@example.com", "sign-up"), "482913"),
		"a dot":           h.Hash(of("a.lice@example.com", "sign-up"), "482913"),
		"another purpose": h.Hash(of("alice@example.com", "reset-password"), "482913"),
		"a capital":       h.Hash(of("alice@example.com", "Sign-up"), "482913"),
		"no purpose":      h.Hash(of("alice@example.com", ""), "482913"),
		"another secret":  hasher(t, ourSecret+"!").Hash(of("alice@example.com", "sign-up"), "482913"),
		"another border":  h.Hash(of("alice@example.com4", "sign-up"), "82913"),
		"no border":       h.Hash(of("alice@example.com482913", "sign-up"), ""),
		"a purpose less":  h.Hash(of("palice@example.com", "sign-u"), "482913"),
		"a Kelvin sign":   h.Hash(of("alice@example.\u212aom", "sign-up"), "482913"),
	} {
		if other == is {
			t.Errorf("%s makes no difference", name)
		}
	}
	if again := h.Hash(verify.Recipient{Mailbox: "a", Address: "Alice@EXAMPLE.com", Purpose: "sign-up"}, "482913"); again != is {
		t.Error("letter case, or the mailbox, makes a difference")
	}
	if h.Hash(of("AZ@example.com", ""), "1") != h.Hash(of("az@example.com", ""), "1") {
		t.Error("the first or the last letter's case makes a difference")
	}
	if h.Hash(of("k@example.com", ""), "482913") == h.Hash(of("\u212a@example.com", ""), "482913") {
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
