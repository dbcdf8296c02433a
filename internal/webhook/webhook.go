// Package webhook checks the signatures of Standard Webhooks.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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
	found, shown := false, strings.SplitN(signatures, " ", maxSignatures)
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + at + ".")) // into a hash, which does not fail
		mac.Write(body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, one := range shown {
			found = hmac.Equal([]byte(strings.TrimSuffix(one, ",")), []byte(want)) || found // Supabase puts a comma between them
		}
	}
	return found && inTime && id != ""
}
