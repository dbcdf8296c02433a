// Package countdown makes the tokens by which a browser may ask how long a mailbox still has to
// wait.
//
// A page that shows a countdown has to ask again: after a reload, after sleep, in another tab.
// It must not have an API key, and an email address must not be in a URL. So an answer to a send
// carries a token, which returns the wait of that one mailbox and nothing else:
//
//	tokens, err := countdown.New(secret)
//	…
//	token := tokens.Seal(mailboxKey, now+window)   // into the answer
//	…
//	key, err := tokens.Open(token, now)            // from GET /countdown/{token}
//
// A token is encrypted and authenticated, and new each time: two tokens do not show whether they
// are of one mailbox. It is padded to steps of 64 bytes, so its length shows the step only. Its
// holder can look until it expires, and neither read it, nor change it, nor make another. So it
// may be in a URL, in a page and in a browser's storage.
//
// A token is as good as its secret. 16 random bytes are enough; a passphrase of 16 letters is
// not, since every token lets its holder try guesses.
package countdown

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/internal/secret"
	"golang.org/x/crypto/chacha20poly1305"
)

// ErrInvalid is the one error of Open, whatever is wrong with a token.
var ErrInvalid = errors.New("countdown: the token is not valid")

// A token is, in URL-safe base64 without padding:
//
//	version | nonce | sealed( expires | length of the key | key | zeros ) | tag
//
// It is sealed with XChaCha20-Poly1305, whose nonces are long enough to be random for any number
// of tokens. The version is authenticated with the rest, and lets a later token have another form.
const (
	version   = 1
	nonceSize = chacha20poly1305.NonceSizeX
	head      = 8 + 2 // expires and length
	step      = 64    // the plaintext is a multiple of this
	overhead  = 1 + nonceSize + chacha20poly1305.Overhead
	maxKey    = 8*step - head // about twice what an email address can have
	maxLength = ((overhead+8*step)*8 + 5) / 6

	// purpose binds the key to what it is for: other keys are made of the same secret.
	purpose = "mailgate countdown token, version 1"
)

// strict refuses spare bits at the end, which would give one token several spellings.
var strict = base64.RawURLEncoding.Strict()

// Tokens seals and opens the tokens of one secret. It may be used by any number of goroutines.
type Tokens struct{ aead cipher.AEAD }

// New makes Tokens of a secret of secret.MinLength bytes or more. Servers with the same secret
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

// Seal makes a token for a mailbox that Open accepts until the millisecond before expires. It
// needs no escaping in a URL. A key of more than 502 bytes has no token, and Seal returns the
// empty string.
func (t *Tokens) Seal(mailboxKey string, expires int64) string {
	if len(mailboxKey) > maxKey {
		return ""
	}
	plain := make([]byte, (head+len(mailboxKey)+step-1)/step*step)
	binary.BigEndian.PutUint64(plain, uint64(expires))
	binary.BigEndian.PutUint16(plain[8:], uint16(len(mailboxKey)))
	copy(plain[head:], mailboxKey)

	raw := make([]byte, 1+nonceSize, overhead+len(plain))
	raw[0] = version
	_, _ = rand.Read(raw[1:]) // never fails
	return strict.EncodeToString(t.aead.Seal(raw, raw[1:], plain, raw[:1]))
}

// Open returns the mailbox that a token was sealed for, or ErrInvalid: the token is forged, cut,
// expired, or of another secret or version. Neither the error nor the time taken says which: the
// work for a token of a given length is the same until its tag is found valid.
func (t *Tokens) Open(token string, now int64) (mailboxKey string, err error) {
	if len(token) > maxLength {
		return "", ErrInvalid
	}
	raw, ok := unpack(token)
	plain, err := t.aead.Open(nil, raw[1:1+nonceSize], raw[1+nonceSize:], []byte{version})
	if !ok || raw[0] != version || err != nil {
		return "", ErrInvalid
	}
	// What the tag fits was made by Seal.
	expires := int64(binary.BigEndian.Uint64(plain))
	length := int(binary.BigEndian.Uint16(plain[8:]))
	if now >= expires {
		return "", ErrInvalid
	}
	return string(plain[head : head+length]), nil
}

// unpack returns the bytes of a token, at least as many as the shortest has. What is not a
// token becomes bytes as well, which no tag fits, so that they cost the same.
func unpack(token string) (raw []byte, ok bool) {
	raw = make([]byte, max(strict.DecodedLen(len(token)), overhead))
	n, err := strict.Decode(raw, []byte(token))
	// The decoder skips line breaks, so the length is compared as well.
	return raw, err == nil && strict.EncodedLen(n) == len(token)
}
