// Package challenge makes challenges that slow scripts down, and checks what was solved: a proof of work as ALTCHA
// has it, and Turnstile.
//
// It keeps no records. A token that is right is named by a hash, and the caller lets each hash count once.
package challenge

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/secret"
)

// Life is for how many milliseconds a challenge can be solved. The hash of a token must count as used for longer than the
// token is valid by any node's clock: four times as long.
const Life = 5 * 60 * 1000

const purpose = "mailgate challenge: proofs of work, version 1"

// Issuer makes and checks challenges.
type Issuer struct {
	mac       *secret.MAC
	turnstile *Turnstile // nil: not accepted
	client    *http.Client
	asking    chan struct{} // one entry for each question to the verifier
}

// New returns an Issuer. Servers that share their records share the secret, too. Turnstile may be nil.
func New(of []byte, turnstile *Turnstile) (*Issuer, error) {
	key, err := secret.Key(of, purpose)
	return &Issuer{mac: secret.NewMAC(key), turnstile: turnstile, client: newClient(), asking: make(chan struct{}, maxAsking)}, err
}

// For is whom a challenge is for: it is of no use for another mailbox, or to a visitor of another network.
type For struct {
	Mailbox string
	Client  netip.Addr // may be unknown
}

// Offer is what is accepted, in answers.
type Offer struct {
	ALTCHA    Proof             `json:"altcha"`
	Turnstile map[string]string `json:"turnstile,omitempty"` // the sitekey
}

// Offer makes a challenge. Without turnstile the proof of work is all that is accepted.
func (i *Issuer) Offer(whom For, now int64, turnstile bool) Offer {
	o := Offer{ALTCHA: i.proof(whom, now)}
	if i.turnstile != nil && turnstile {
		o.Turnstile = map[string]string{"sitekey": i.turnstile.Sitekey}
	}
	return o
}

// The kinds of challenges.
const (
	proofOfWork = "altcha"
	widget      = "turnstile"
)

// Kinds are all of them, in metrics.
var Kinds = []string{proofOfWork, widget}

// ErrUnsolved is the error of a token that solves nothing, and ErrVerifier that of one which cannot be checked.
var (
	ErrUnsolved = errors.New("the challenge is not solved")
	ErrVerifier = errors.New("the verifier of the challenge failed")
)

// Check returns the hash by which a token counts once, and its kind. Every error is ErrUnsolved or ErrVerifier.
func (i *Issuer) Check(ctx context.Context, token string, whom For, now int64) (hash, kind string, err error) {
	if text, ok := proofIn(token); ok {
		hash, err = i.checkProof(text, whom, now)
		return hash, proofOfWork, err
	}
	if i.turnstile == nil {
		return "", proofOfWork, fmt.Errorf("%w: it is no proof of work", ErrUnsolved)
	}
	select {
	case i.asking <- struct{}{}:
		defer func() { <-i.asking }()
	default:
		return "", widget, fmt.Errorf("%w: too many tokens are being verified", ErrVerifier)
	}
	if err := i.turnstile.check(ctx, i.client, token, whom, i.uuid(token, whom.Mailbox), time.UnixMilli(now)); err != nil {
		return "", widget, err
	}
	return i.sum(widget, token), widget, nil
}

func (i *Issuer) sum(texts ...string) string {
	sum := i.mac.Sum(texts...)
	return hex.EncodeToString(sum[:])
}

func visitor(whom For) string { return network.Visitor(whom.Client) }
