package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// A Send is a mail with a code that is to be sent. Only Email is required.
type Send struct {
	Email string
	// Code is one that the caller has made, of 4 to 12 of 0-9A-Za-z. Left out, mailgate
	// makes one, which [Client.VerifyCode] checks.
	Code string
	// Purpose is what mailgate's code is for, such as "sign-up", in 1 to 32 lower-case letters,
	// digits, - and _, the first a letter. [Client.VerifyCodeFor] then takes the code for that,
	// and nothing takes it for anything else. Not with a Code of your own.
	Purpose          string
	Template, Locale string
	// ClientIP is the visitor's address, for limits by address.
	ClientIP netip.Addr
	// Data are up to 16 short texts for the template.
	Data map[string]string

	// Key is the idempotency key: the same key and the same Send are one mail, however
	// often they are sent. 1 to 255 visible ASCII characters, as [NewKey] makes them. A
	// new one for each call, if empty.
	Key string
}

// A Sent says that a relay has accepted the mail. Its Standing is how the mailbox stands
// now: Wait is when the next mail may be sent.
type Sent struct {
	Standing
	ID        string // what mailgate's log and store know the send by
	MessageID string // that of the mail, with its angle brackets
	Email     string // where it went
	// ExpiresIn is how long the code is valid, where mailgate made it.
	ExpiresIn time.Duration
	// Replayed says that this is the answer to an earlier request under the same key, and
	// tells of that moment.
	Replayed bool
}

// NewKey makes an idempotency key that nobody has used.
func NewKey() string { return rand.Text() }

// ErrKey is the kind of a [Send.Key] that will not do.
var ErrKey = errors.New("an idempotency key is 1 to 255 visible ASCII characters")

// SendCode has a code mailed, and returns when a relay has accepted the mail, or the
// error that says why not: a [Wait], a [Problem] or a [NoAnswer]. It asks again under the
// same key where that is safe, so one call is at most one mail. Where that mail may have
// been sent all the same, the error is an [Unsettled] too; any other but a Problem of kind
// [DeliveryUnknown] means that this call has sent none.
func (c *Client) SendCode(ctx context.Context, s Send) (Sent, error) {
	key := cmp.Or(s.Key, NewKey())
	if !keyWillDo(key) {
		return Sent{}, fmt.Errorf("sending a code: %w", ErrKey)
	}
	var j sentJSON
	q := question{doing: "sending a code", method: http.MethodPost, path: "/send-code", body: s.json(), key: key, mail: true, harmless: true}
	header, err := c.ask(ctx, q, &j)
	if err != nil {
		return Sent{}, err
	}
	return Sent{
		Standing: j.standing(), ID: j.ID, MessageID: j.MessageID, Email: j.Email,
		ExpiresIn: time.Duration(j.ExpiresIn), Replayed: replayed(header),
	}, nil
}

// replayed reports whether an answer is that to an earlier request.
func replayed(header http.Header) bool { return header.Get("Idempotent-Replayed") == "true" }

type sentJSON struct {
	standingJSON
	Status    string `json:"status"`
	ID        string `json:"id"`
	MessageID string `json:"message_id"`
	Email     string `json:"email"`
	ExpiresIn millis `json:"expires_in_ms"`
}

func (j *sentJSON) whole() bool { return j.Status == "sent" && j.ID != "" && j.standingJSON.whole() }

// json is what is sent. What is empty is left out.
func (s Send) json() any {
	ip := ""
	if s.ClientIP.IsValid() {
		ip = s.ClientIP.WithZone("").String() // a zone means something on one machine only
	}
	return struct {
		Email    string            `json:"email"`
		Code     string            `json:"code,omitempty"`
		Purpose  string            `json:"purpose,omitempty"`
		Template string            `json:"template,omitempty"`
		Locale   string            `json:"locale,omitempty"`
		ClientIP string            `json:"client_ip,omitempty"`
		Data     map[string]string `json:"data,omitempty"`
	}{s.Email, s.Code, s.Purpose, s.Template, s.Locale, ip, s.Data}
}

func keyWillDo(key string) bool {
	return key != "" && len(key) <= 255 && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// quoteKey writes a key as a String of RFC 9651.
func quoteKey(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}
