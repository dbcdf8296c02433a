package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/mailer/address"
)

// Secrets sign the calls of Supabase Auth. Any of them is accepted, so that one can be replaced while calls
// arrive.
type Secrets [][]byte

// minSecret is the least that Standard Webhooks allows, in bytes.
const minSecret = 24

// ParseSecrets reads secrets as Supabase shows them, v1,whsec_…, with | between several. Errors do not
// repeat them.
func ParseSecrets(text string) (all Secrets, err error) {
	for one := range strings.SplitSeq(text, "|") {
		encoded, ok := strings.CutPrefix(strings.TrimSpace(one), "v1,whsec_")
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(secret) < minSecret {
			return nil, fmt.Errorf("must be v1,whsec_ and base64 of at least %d bytes, as Supabase generates it; several with | between them", minSecret)
		}
		all = append(all, secret)
	}
	return all, nil
}

// String does not show the secrets.
func (s Secrets) String() string {
	return strings.TrimSuffix(strings.Repeat("v1,whsec_***|", len(s)), "|")
}

// Supabase is the hook of Supabase Auth.
type Supabase struct {
	secrets Secrets
	site    string
}

// NewSupabase makes the hook. Links in emails begin with site, the address of Supabase Auth.
func NewSupabase(secrets Secrets, site string) *Supabase {
	return &Supabase{secrets, strings.TrimSuffix(site, "/")}
}

// Name is the end of the hook's path, and its name in logs, metrics and rules.
func (*Supabase) Name() string { return "supabase" }

// clockSkew is how old or early a signature may be.
const clockSkew = 5 * time.Minute

// Genuine checks the signature of Standard Webhooks: an HMAC over id, time and body. The time it takes does
// not depend on which signature or secret is wrong.
func (s *Supabase) Genuine(header func(name string) string, body []byte, now time.Time) bool {
	id, at := header("webhook-id"), header("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	inTime := err == nil && now.Sub(time.Unix(seconds, 0)).Abs() <= clockSkew
	found := false
	for _, secret := range s.secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + at + ".")) // into a hash, which does not fail
		mac.Write(body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, shown := range strings.Fields(header("webhook-signature")) {
			found = same(strings.TrimSuffix(shown, ","), want) || found // Supabase puts a comma between them
		}
	}
	return found && inTime && id != ""
}

// supabaseCall is the part of a call that is used.
type supabaseCall struct {
	Metadata struct {
		UUID string    `json:"uuid"`
		Time time.Time `json:"time"`
		IP   string    `json:"ip_address"`
	} `json:"metadata"`
	User struct {
		Email    string `json:"email"`
		NewEmail string `json:"new_email"`
	} `json:"user"`
	Email supabaseEmail `json:"email_data"`
}

type supabaseEmail struct {
	Kind         string `json:"email_action_type"`
	Token        string `json:"token"`
	TokenHash    string `json:"token_hash"`
	TokenNew     string `json:"token_new"`
	TokenHashNew string `json:"token_hash_new"`
	RedirectTo   string `json:"redirect_to"`
}

// supabaseTemplates are the emails with a code, by email_action_type. Notifications have none and are
// refused: limits that keep a second code away would keep them away too.
var supabaseTemplates = map[string]string{
	"signup": "supabase-signup", "recovery": "supabase-recovery", "magiclink": "supabase-magiclink", "email": "supabase-magiclink",
	"invite": "supabase-invite", "email_change": emailChange, "reauthentication": "supabase-reauthentication",
}

const emailChange = "supabase-email-change"

// Supabase Auth waits for five seconds from its first try, tries again two seconds after a lost connection,
// and keeps the token only when the hook has answered. A code that left later than handOver is one that it
// does not know.
const (
	handOver   = 3500 * time.Millisecond
	retryAfter = 2 * time.Second
)

// Read returns the emails of a call. All tries of one event have one key.
func (s *Supabase) Read(body []byte, identity address.Identity, began time.Time) (key string, emails []delivery.Send, err error) {
	var call supabaseCall
	if err := read(body, &call); err != nil {
		return "", nil, err
	}
	const longest = 64
	if len(call.Metadata.UUID) > longest {
		return "", nil, errors.New("metadata.uuid is too long")
	}
	letters, err := s.letters(call)
	for _, l := range letters {
		email, err := l.email(identity)
		if err != nil {
			return "", nil, err
		}
		email.By = call.begun(began).Add(handOver)
		emails = append(emails, email)
	}
	return call.Metadata.UUID, emails, err
}

// begun is when the first try of a call may have begun, which arrived at the given time.
func (c *supabaseCall) begun(arrived time.Time) time.Time {
	switch first := c.Metadata.Time; {
	case first.IsZero(), first.After(arrived):
		return arrived
	case first.Before(arrived.Add(-retryAfter)): // the clocks may differ
		return arrived.Add(-retryAfter)
	default:
		return first
	}
}

// letters are the emails of a call: two for a change that both addresses have to confirm. There the token for
// one address comes with the hash for the other.
func (s *Supabase) letters(call supabaseCall) ([]letter, error) {
	email := call.Email
	template, known := supabaseTemplates[email.Kind]
	if !known {
		return nil, unknownKind("email_action_type", email.Kind)
	}
	one := letter{field: "user.email", to: call.User.Email, template: template, codeField: "email_data.token", code: email.Token, visitor: call.Metadata.IP}
	if template == "supabase-reauthentication" {
		return []letter{one}, nil
	}
	one.data = s.link(email, email.TokenHash)
	if template != emailChange {
		return []letter{one}, nil
	}
	changed := one
	changed.field, changed.to = "user.new_email", call.User.NewEmail
	if email.TokenNew == "" && email.TokenHashNew == "" {
		return []letter{changed}, nil
	}
	changed.codeField, changed.code = "email_data.token_new", email.TokenNew
	one.data = s.link(email, email.TokenHashNew)
	return []letter{one, changed}, nil
}

// link is the data of a template: the link to Supabase Auth, and its parts for operators whose own page
// confirms. Supabase Auth leads a visitor only to a redirect_to that its settings allow.
func (s *Supabase) link(email supabaseEmail, hash string) map[string]string {
	if hash == "" {
		return nil
	}
	query := url.Values{"token": {hash}, "type": {email.Kind}}
	if email.RedirectTo != "" {
		query.Set("redirect_to", email.RedirectTo)
	}
	return map[string]string{
		"link": s.site + "/verify?" + query.Encode(), "token_hash": hash, "type": email.Kind, "redirect_to": email.RedirectTo,
	}
}

// Answer says in Supabase's terms what became of the emails: it passes the words of an error on only where
// the status is 200.
func (*Supabase) Answer(status int, words string) (code int, contentType string, body []byte) {
	if status == 200 {
		return 200, "application/json", []byte("{}")
	}
	type failure struct {
		Code    int    `json:"http_code"`
		Message string `json:"message"`
	}
	return 200, "application/json", wire.Encode(map[string]failure{"error": {status, words}})
}
