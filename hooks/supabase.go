package hooks

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/webhook"
	"github.com/mailgate/mailgate/internal/wire"
)

// Secrets sign the calls of Supabase Auth. Any of them is accepted, so that one can be replaced while calls
// arrive.
type Secrets [][]byte

// ParseSecrets reads secrets as Supabase shows them, v1,whsec_…, with | between several. Errors do not
// repeat them.
func ParseSecrets(text string) (all Secrets, err error) {
	for one := range strings.SplitSeq(text, "|") {
		standard, ok := strings.CutPrefix(strings.TrimSpace(one), "v1,")
		secret, err := webhook.ParseSecret(standard)
		if !ok || err != nil {
			return nil, fmt.Errorf("must be v1,whsec_ and base64 of at least %d bytes, as Supabase generates it; several with | between them", webhook.MinSecret)
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

// Name returns "supabase".
func (*Supabase) Name() string { return "supabase" }

// Genuine checks the signature of Standard Webhooks.
func (s *Supabase) Genuine(c *Call) error {
	return genuineIf(webhook.Genuine(s.secrets, c.Header("webhook-id"), c.Header("webhook-timestamp"), c.Header("webhook-signature"), c.Body, c.Now))
}

// supabaseCall is the part of a call that is used.
type supabaseCall struct {
	Metadata struct {
		Time time.Time `json:"time"`
		IP   string    `json:"ip_address"`
	} `json:"metadata"`
	User struct {
		Email    string `json:"email"`
		NewEmail string `json:"new_email"`
	} `json:"user"`
	Email struct {
		Kind         string `json:"email_action_type"`
		Token        string `json:"token"`
		TokenHash    string `json:"token_hash"`
		TokenNew     string `json:"token_new"`
		TokenHashNew string `json:"token_hash_new"`
		RedirectTo   string `json:"redirect_to"`
	} `json:"email_data"`
}

// supabaseTemplates are the emails with a code, by email_action_type. Notifications have none and are
// refused: limits that keep a second code away would keep them away too.
var supabaseTemplates = map[string]string{
	"signup": "supabase-signup", "recovery": "supabase-recovery", "magiclink": "supabase-magiclink", "email": "supabase-magiclink",
	"invite": "supabase-invite", "email_change": "supabase-email-change", "reauthentication": "supabase-reauthentication",
}

// Supabase Auth waits for five seconds from its first try, tries again two seconds after a lost connection,
// and keeps the token only when the hook has answered. A code that left later than handOver is one that it
// does not know.
const (
	handOver  = 3500 * time.Millisecond
	secondTry = 2500 * time.Millisecond // has come by then; a time further back is that of another clock
)

// Emails returns those of a call, two for a change of address that both have to confirm. There the token
// for one address comes with the hash for the other, and the new one, which may not exist, is first.
func (s *Supabase) Emails(c *Call) (emails []delivery.Send, by time.Time, err error) {
	var call supabaseCall
	if err := read(c.Body, &call); err != nil {
		return nil, by, err
	}
	began := c.Began
	if first := call.Metadata.Time; first.Before(began) && first.After(began.Add(-secondTry)) {
		began = first
	}
	data := call.Email
	template := supabaseTemplates[data.Kind]
	if template == "" {
		return nil, by, unknownKind("email_action_type", data.Kind)
	}
	type part struct{ field, to, token, hash string }
	current := part{"user.email", call.User.Email, data.Token, data.TokenHash}
	next := part{"user.new_email", call.User.NewEmail, data.Token, data.TokenHash}
	parts := []part{current}
	switch both := data.TokenNew != "" || data.TokenHashNew != ""; {
	case data.Kind == "email_change" && both:
		next.token, current.hash = data.TokenNew, data.TokenHashNew
		parts = []part{next, current}
	case data.Kind == "email_change":
		parts = []part{next}
	}
	for _, p := range parts {
		one, err := email(c.Identity, p.field, p.to, call.Metadata.IP)
		if err == nil && p.token == "" { // one would be issued that Supabase does not know
			err = errors.New("email_data has no token for " + p.field)
		}
		if err != nil {
			return nil, by, err
		}
		one.Mail.Template, one.Mail.Code, one.Mail.Data = template, p.token, s.link(&call, p.hash)
		emails = append(emails, one)
	}
	return emails, began.Add(handOver), nil
}

// link is the data of a template: the link to Supabase Auth, and its parts for operators whose own page
// confirms. Supabase Auth leads a visitor only to a redirect_to that its settings allow.
func (s *Supabase) link(call *supabaseCall, hash string) map[string]string {
	if hash == "" {
		return nil
	}
	query := url.Values{"token": {hash}, "type": {call.Email.Kind}, "redirect_to": {call.Email.RedirectTo}}
	return map[string]string{
		"link": s.site + "/verify?" + query.Encode(), "token_hash": hash, "type": call.Email.Kind, "redirect_to": escape(call.Email.RedirectTo),
	}
}

// escape percent-encodes what cannot be in a URL, as browsers do: behind it an email program might see a link
// of its own.
func escape(link string) string {
	var escaped strings.Builder
	for _, octet := range []byte(link) {
		if NotOfURL(rune(octet)) {
			fmt.Fprintf(&escaped, "%%%02X", octet)
		} else {
			escaped.WriteByte(octet)
		}
	}
	return escaped.String()
}

// Answer says in Supabase's terms what became of the emails: it passes the words of an error on only where
// the status is 200.
func (*Supabase) Answer(status int, words string) (code int, contentType string, body []byte) {
	if status == 200 {
		return 200, "application/json", []byte("{}")
	}
	return 200, "application/json", wire.Encode(map[string]any{"error": map[string]any{"http_code": status, "message": words}})
}
