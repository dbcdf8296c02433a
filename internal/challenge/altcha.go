package challenge

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Proof is a challenge of proofOfWork, version 1: which Number up to MaxNumber gives this hash with the salt before it?
type Proof struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"`
	MaxNumber int    `json:"maxnumber"`
	Salt      string `json:"salt"`
	Signature string `json:"signature"`
}

// solution is a Proof with its number.
type solution struct {
	Proof
	Number int64 `json:"number"`
}

const (
	maxNumber = 100_000 // half of it are hashed on average, in about a second on a phone
	expires   = "?expires="
)

// proof makes a challenge. Its salt ends with a mark, and its signature is of salt and hash together, so
// that no digit moves between the salt and the number.
func (i *Issuer) proof(whom For, now int64) Proof {
	number, _ := rand.Int(rand.Reader, big.NewInt(maxNumber+1)) // never fails
	p := Proof{Algorithm: "SHA-256", MaxNumber: maxNumber, Salt: rand.Text() + expires + strconv.FormatInt((now+Life)/1000, 10) + "&"}
	p.Challenge = hashOf(p.Salt, number.Int64())
	p.Signature = i.sign(p.Salt, p.Challenge, whom)
	return p
}

func hashOf(salt string, number int64) string {
	sum := sha256.Sum256([]byte(salt + strconv.FormatInt(number, 10)))
	return hex.EncodeToString(sum[:])
}

func (i *Issuer) sign(salt, hash string, whom For) string {
	return i.sum(proofOfWork, salt, hash, whom.Mailbox, visitor(whom))
}

// proofIn returns the text of a solution: a JSON object, which widgets send in base64. No token of Turnstile is one.
func proofIn(token string) (text []byte, ok bool) {
	text, err := base64.StdEncoding.DecodeString(token)
	return text, err == nil && bytes.HasPrefix(text, []byte("{"))
}

// checkProof returns the hash of a solution. It is that of the challenge, however the token is spelled.
func (i *Issuer) checkProof(text []byte, whom For, now int64) (string, error) {
	var s solution
	if json.Unmarshal(text, &s) != nil {
		return "", fmt.Errorf("%w: it is malformed", ErrUnsolved)
	}
	_, until, _ := strings.Cut(strings.TrimSuffix(s.Salt, "&"), expires)
	end, err := strconv.ParseInt(until, 10, 64)
	switch {
	case !hmac.Equal([]byte(i.sign(s.Salt, s.Challenge, whom)), []byte(s.Signature)):
		return "", fmt.Errorf("%w: it is of another mailbox or visitor, or was altered", ErrUnsolved)
	case err != nil || end*1000 <= now:
		return "", fmt.Errorf("%w: it has expired", ErrUnsolved)
	case !hmac.Equal([]byte(hashOf(s.Salt, s.Number)), []byte(s.Challenge)):
		return "", fmt.Errorf("%w: the number is wrong", ErrUnsolved)
	}
	return i.sum(proofOfWork, s.Salt, s.Challenge), nil
}
