package similar_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/similar"
)

// A letter that is missing, added, wrong or swapped with the next is found, and another word is not.
func TestTo_EachMistake_Found(t *testing.T) {
	names := []string{"email", "client_ip", "limit", "data"}
	for written, want := range map[string]string{
		"emil": "email", "emaill": "email", "enail": "email", "emial": "email", "EMAIL": "email", "e-mail": "email",
		"clientIp": "client_ip", "client-pi": "client_ip", "limits": "limit", "dat": "data",
		"": "", "x": "", "da": "", "subject": "", "mailbox": "", "email_address": "", strings.Repeat("email", 20): "",
	} {
		if got := similar.To(written, names); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
}
