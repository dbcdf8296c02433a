package secret_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/mailgate/mailgate/internal/secret"
)

// Servers of one secret have one digest, those of another secret another. It stays as it
// is, or servers of two versions would seem to differ.
func TestDigest(t *testing.T) {
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
