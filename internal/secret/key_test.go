package secret_test

import (
	"bytes"
	"encoding/hex"
	"errors"
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

func TestKey(t *testing.T) {
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

func TestSecretsThatAreTooShort(t *testing.T) {
	for _, short := range []string{"", "fifteen bytes .."[:15]} {
		if k, err := secret.Key([]byte(short), "one"); k != nil || !errors.Is(err, secret.ErrTooShort) {
			t.Errorf("%d bytes: %v", len(short), err)
		}
	}
	key(t, ours[:secret.MinLength], "one")
}
