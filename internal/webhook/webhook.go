// Package webhook makes and checks the signatures of Standard Webhooks.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MinSecret is the least that Standard Webhooks allows, in bytes.
const MinSecret = 24

// maxSignatures are those of a call that are compared: one for each secret of the sender.
const maxSignatures = 10

// clockSkew is how old or early a signature may be.
const clockSkew = 5 * time.Minute

// Genuine checks an HMAC over id, time and body by any of the secrets. The time it takes does not depend on
// which signature or secret is wrong.
func Genuine(secrets [][]byte, id, at, signatures string, body []byte, now time.Time) bool {
	seconds, err := strconv.ParseInt(at, 10, 64)
	inTime := err == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= clockSkew
	found, given := false, strings.SplitN(signatures, " ", maxSignatures)
	for _, secret := range secrets {
		want := Sign(secret, id, at, body)
		for _, one := range given {
			found = hmac.Equal([]byte(strings.TrimSuffix(one, ",")), []byte(want)) || found // Supabase puts a comma between them
		}
	}
	return found && inTime && id != ""
}

// Sign returns the signature of a call by one secret. Those by several are written with blanks in between.
func Sign(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + at + ".")) // into a hash, which does not fail
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// ParseSecret reads a secret as Standard Webhooks writes it. The error does not repeat it.
func ParseSecret(text string) ([]byte, error) {
	encoded, prefixed := strings.CutPrefix(text, "whsec_")
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !prefixed || err != nil || len(secret) < MinSecret {
		return nil, errSecret
	}
	return secret, nil
}

var errSecret = fmt.Errorf("must be whsec_ and base64 of at least %d bytes", MinSecret)

// Secrets are several, with which calls are signed while one of them is replaced.
type Secrets [][]byte

// ParseSecrets reads secrets with | between them.
func ParseSecrets(text string) (all Secrets, err error) {
	for one := range strings.SplitSeq(text, "|") {
		secret, err := ParseSecret(strings.TrimSpace(one))
		if err != nil {
			return nil, fmt.Errorf("%w; several with | between them", err)
		}
		all = append(all, secret)
	}
	return all, nil
}

// String does not show the secrets.
func (s Secrets) String() string {
	return strings.TrimSuffix(strings.Repeat("whsec_***|", len(s)), "|")
}
