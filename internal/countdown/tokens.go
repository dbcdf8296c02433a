// Package countdown makes the tokens with which a browser asks how long the next send has to wait.
//
// A page that shows a countdown has to ask again: after a reload, after sleep, in another tab.
// It must not have an API key, and an email address must not be in a URL. So the answer to a send
// carries a token, in which the server finds again what the send was counted by:
//
//	tokens, err := countdown.New(secret)
//	…
//	token := tokens.Seal(text, now+window)   // into the answer
//	…
//	text, ok := tokens.Open(token, now)      // from GET /countdown/{token}
//
// A token is encrypted and authenticated, and new each time: two tokens do not show whether their
// texts are the same. It is padded to steps of 64 bytes, so its length shows the step only. Its
// holder can present it until it expires, and neither read it, nor change it, nor make another. So
// it may be in a URL, in a page and in a browser's storage.
//
// A token is as good as its secret. 16 random bytes are enough; a passphrase of 16 letters is
// not, since every token lets its holder try guesses.
package countdown

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/mailgate/mailgate/internal/secret"
	"golang.org/x/crypto/chacha20poly1305"
)

// A token is, in URL-safe base64 without padding:
//
//	version | nonce | sealed( expires | length of the text | text | zeros ) | tag
//
// It is sealed with XChaCha20-Poly1305, whose nonces are long enough to be random for any number
// of tokens. The version is authenticated with the rest, and lets a later token have another form.
const (
	version   = 1
	nonceSize = chacha20poly1305.NonceSizeX
	head      = 8 + 2 // expires and length
	step      = 64    // the plaintext is a multiple of this
	overhead  = 1 + nonceSize + chacha20poly1305.Overhead
	maxText   = 8*step - head // about twice what an email address can have
	maxLength = ((overhead+8*step)*8 + 5) / 6

	// purpose binds the key to what it is for: other keys are made of the same secret.
	purpose = "mailgate countdown token, version 1"
)

// strict refuses spare bits at the end, which would give one token several spellings.
var strict = base64.RawURLEncoding.Strict()

// Tokens seals and opens the tokens of one secret. It may be used by any number of goroutines.
type Tokens struct{ aead cipher.AEAD }

// New makes Tokens of a secret of 16 bytes or more. Servers with the same secret
// open each other's tokens.
func New(of []byte) (*Tokens, error) {
	key, err := secret.Key(of, purpose)
	if err != nil {
		return nil, fmt.Errorf("countdown: %w", err)
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, fmt.Errorf("countdown: %w", err)
	}
	return &Tokens{aead}, nil
}

// Seal makes a token of a text, which Open accepts until the millisecond before expires. It needs
// no escaping in a URL. A text of more than 502 bytes has no token: Seal returns the empty string.
func (t *Tokens) Seal(text string, expires int64) string {
	if len(text) > maxText {
		return ""
	}
	size := (head + len(text) + step - 1) / step * step
	raw := make([]byte, 1+nonceSize+size, overhead+size) // what is sealed takes the place of its plaintext
	start, plain := raw[:1+nonceSize], raw[1+nonceSize:]
	start[0] = version
	_, _ = rand.Read(start[1:]) // never fails
	binary.BigEndian.PutUint64(plain, uint64(expires))
	binary.BigEndian.PutUint16(plain[8:], uint16(len(text)))
	copy(plain[head:], text)
	return strict.EncodeToString(t.aead.Seal(start, start[1:], plain, start[:1]))
}

// Open returns the text of a token. It is not ok if the token is forged, cut, expired, or of
// another secret or version. The time taken does not show which: the work for a token of a given
// length is the same until its tag is found valid.
func (t *Tokens) Open(token string, now int64) (text string, ok bool) {
	if len(token) > maxLength {
		return "", false
	}
	raw, ok := unpack(token)
	plain, err := t.aead.Open(nil, raw[1:1+nonceSize], raw[1+nonceSize:], []byte{version})
	if !ok || raw[0] != version || err != nil {
		return "", false
	}
	// What the tag fits was made by Seal.
	expires := int64(binary.BigEndian.Uint64(plain))
	length := int(binary.BigEndian.Uint16(plain[8:]))
	if now >= expires {
		return "", false
	}
	return string(plain[head : head+length]), true
}

// unpack returns the bytes of a token, at least as many as the shortest has. What is not a
// token becomes bytes as well, which no tag fits, so that they cost the same.
func unpack(token string) (raw []byte, ok bool) {
	raw = make([]byte, max(strict.DecodedLen(len(token)), overhead))
	n, err := strict.Decode(raw, []byte(token))
	// The decoder skips line breaks, so the length is compared as well.
	return raw, err == nil && strict.EncodedLen(n) == len(token)
}
