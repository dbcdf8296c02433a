package countdown

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/internal/secret"
)

// ErrInvalid is all that Open ever says about a token it refuses, whatever is wrong.
var ErrInvalid = errors.New("countdown: the token is not valid")

const (
	// MaxMailbox is the most bytes of a mailbox key that fit in a token: about twice
	// what a mail address can have.
	MaxMailbox = 8*block - head

	// MaxLength is the length of the longest token there is. Whatever is longer may be
	// refused unread.
	MaxLength = ((overhead+8*block)*8 + 5) / 6
)

// A token is, in URL-safe base64 without padding:
//
//	version | nonce | sealed( expires | length of the key | key | zeros ) | tag
//
// The version is authenticated with the rest. It says how to read a token, so that a
// later one can have another form or another key while this one is still about.
const (
	version  = 1
	head     = 8 + 2 // expires and length
	block    = 64    // the plaintext is a multiple of this, so only its count shows
	overhead = 1 + nonceSize + tagSize

	// purpose binds the key to what it is for: the same secret serves elsewhere, and
	// nothing made there may pass here.
	purpose = "mailgate countdown token, version 1"
)

// strict refuses spare bits at the end, which would give one token several spellings.
var strict = base64.RawURLEncoding.Strict()

// Tokens seals and opens the tokens of one secret. It may be used by many goroutines at
// once.
type Tokens struct {
	key *extendedKey
}

// New makes Tokens of a secret of secret.MinLength bytes or more. Servers with the same
// secret open each other's tokens. The secret is neither kept nor changed, and may
// serve other purposes too.
func New(of []byte) (*Tokens, error) {
	derived, err := secret.Key(of, purpose)
	if err != nil {
		return nil, fmt.Errorf("countdown: deriving the key: %w", err)
	}
	key, err := newExtendedKey(derived)
	if err != nil {
		return nil, fmt.Errorf("countdown: using the key: %w", err)
	}
	return &Tokens{key}, nil
}

// Seal makes a token for a mailbox that Open accepts until the millisecond before
// expires. It is never longer than MaxLength and needs no escaping in a URL. A key
// longer than MaxMailbox has no token, and Seal returns the empty string.
func (t *Tokens) Seal(mailboxKey string, expires int64) string {
	if len(mailboxKey) > MaxMailbox {
		return ""
	}
	plain := make([]byte, (head+len(mailboxKey)+block-1)/block*block)
	binary.BigEndian.PutUint64(plain, uint64(expires))
	binary.BigEndian.PutUint16(plain[8:], uint16(len(mailboxKey)))
	copy(plain[head:], mailboxKey)

	raw := make([]byte, 1+nonceSize, overhead+len(plain))
	raw[0] = version
	rand.Read(raw[1:]) // never fails: the program ends rather than go on without chance
	return strict.EncodeToString(t.key.seal(raw, raw[1:], plain, raw[:1]))
}

// Open returns the mailbox that a token was sealed for, or ErrInvalid: the token is
// forged, cut, expired, another server's or of another version, and which of these is
// not said. Nor does the time tell anything that whoever made the token does not know:
// for a token of a given length the work is the same up to and including the check of
// the tag, but for base64 that cannot be read to its end. Only a genuine token is
// decrypted after that, which takes some nanoseconds more.
func (t *Tokens) Open(token string, now int64) (mailboxKey string, err error) {
	if len(token) > MaxLength {
		return "", ErrInvalid
	}
	raw, ok := unpack(token)
	plain, err := t.key.open(raw[1:1+nonceSize], raw[1+nonceSize:], []byte{version})
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

// unpack returns the bytes of a token, at least as many as the shortest has. What is
// not a token becomes bytes too, which no tag fits, so that they cost what others do.
func unpack(token string) (raw []byte, ok bool) {
	raw = make([]byte, max(strict.DecodedLen(len(token)), overhead))
	n, err := strict.Decode(raw, []byte(token))
	// The decoder passes over line breaks, so the length is compared as well.
	return raw, err == nil && strict.EncodedLen(n) == len(token)
}
