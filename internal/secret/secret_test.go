package secret_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/secret"
)

var ours = []byte("sixteen bytes of chance, or more")

func key(t *testing.T, of []byte, purpose string) []byte {
	t.Helper()
	k, err := secret.Key(of, purpose)
	if err != nil || len(k) != 32 {
		t.Fatalf("%d bytes, %v", len(k), err)
	}
	return k
}

func TestKey_SecretAndPurpose_BothCount(t *testing.T) {
	one := key(t, ours, "one")
	if !bytes.Equal(one, key(t, ours, "one")) {
		t.Error("the same secret and purpose gave two keys")
	}
	if bytes.Equal(one, key(t, ours, "two")) || bytes.Equal(one, key(t, []byte("sixteen bytes of chance, or fewer"), "one")) {
		t.Error("another purpose or secret gave the same key")
	}
	if strings.Contains(hex.EncodeToString(one), hex.EncodeToString(ours[:8])) {
		t.Error("the key shows the secret")
	}
}

func TestKey_ShortSecret_Fails(t *testing.T) {
	for _, short := range []string{"", "fifteen bytes .."[:15]} {
		if k, err := secret.Key([]byte(short), "one"); k != nil || !errors.Is(err, secret.ErrTooShort) {
			t.Errorf("%d bytes: %v", len(short), err)
		}
	}
	key(t, ours[:secret.MinLength], "one")
}

// A digest does not change between versions, or servers of two versions would seem to differ.
func TestDigest_Secrets_TellsThemApart(t *testing.T) {
	one, err := secret.Digest(ours)
	if err != nil || one != "a4c8" {
		t.Errorf("the digest is %q, %v", one, err)
	}
	other, err := secret.Digest([]byte("sixteen bytes of chance, or less"))
	if err != nil || other == one || !regexp.MustCompile(`^[0-9a-f]{4}$`).MatchString(other) {
		t.Errorf("that of another secret is %q, %v", other, err)
	}
	if d, err := secret.Digest(ours[:secret.MinLength-1]); d != "" || !errors.Is(err, secret.ErrTooShort) {
		t.Errorf("of a short one it is %q, %v", d, err)
	}
}

// The first value was computed with another implementation of HKDF and HMAC.
func TestSum_KeyAndEachText_Count(t *testing.T) {
	k := key(t, ours, "one")
	is := secret.NewMAC(k).Sum("POST /send-code", "{}")
	if got := hex.EncodeToString(is[:]); got != "8ad6e88b65cd1b981fd804b22b7d21c0" {
		t.Errorf("the sum is %s", got)
	}
	for name, other := range map[string][16]byte{
		"another text":   secret.NewMAC(k).Sum("POST /send-code", "{ }"),
		"another border": secret.NewMAC(k).Sum("POST /send-code{", "}"),
		"one text":       secret.NewMAC(k).Sum("POST /send-code{}"),
		"an empty text":  secret.NewMAC(k).Sum("POST /send-code", "{}", ""),
		"another key":    secret.NewMAC(key(t, ours, "two")).Sum("POST /send-code", "{}"),
	} {
		if other == is {
			t.Errorf("%s makes no difference", name)
		}
	}
}
