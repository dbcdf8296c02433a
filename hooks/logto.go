package hooks

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/address"
)

// Logto is the hook of Logto's HTTP email connector.
type Logto struct{ authorization, origin string }

// NewLogto makes the hook. Its calls have this Authorization, and invitations lead to this site only; without
// one they are refused.
func NewLogto(authorization, site string) *Logto { return &Logto{authorization, origin(site)} }

// Name returns "logto".
func (*Logto) Name() string { return "logto" }

// Genuine checks the Authorization, which Logto sends as it was entered there.
func (l *Logto) Genuine(header func(name string) string, _ []byte, _ time.Time) bool {
	return same(header("Authorization"), l.authorization)
}

const invitation = "logto-organization-invitation"

// logtoTemplates are the emails by type.
var logtoTemplates = map[string]string{
	"SignIn": "logto-sign-in", "Register": "logto-register", "ForgotPassword": "logto-forgot-password", "OrganizationInvitation": invitation,
	"Generic": "logto-generic", "Test": "logto-generic", "UserPermissionValidation": "logto-user-permission-validation",
	"BindNewIdentifier": "logto-bind-new-identifier", "MfaVerification": "logto-mfa-verification", "BindMfa": "logto-bind-mfa",
}

// Read returns the email of a call. It has no key: Logto calls once.
func (l *Logto) Read(body []byte, identity address.Identity, _ time.Time) (key string, emails []delivery.Send, err error) {
	var call struct {
		To      string `json:"to"`
		Type    string `json:"type"`
		IP      string `json:"ip"`
		Payload struct {
			Code   string `json:"code"`
			Link   string `json:"link"`
			Locale string `json:"locale"`
		} `json:"payload"`
	}
	if err := read(body, &call); err != nil {
		return "", nil, err
	}
	template, known := logtoTemplates[call.Type]
	if !known {
		return "", nil, unknownKind("type", call.Type)
	}
	one, err := email(identity, "to", call.To, template, call.Payload.Code, call.IP)
	one.Mail.Locale = call.Payload.Locale
	switch {
	case err != nil:
	case template != invitation && call.Payload.Code == "": // one would be issued that Logto does not know
		err = errors.New("payload.code is missing")
	case template == invitation && (l.origin == "" || origin(call.Payload.Link) != l.origin):
		err = errors.New("payload.link does not lead to MAILGATE_HOOK_LOGTO_URL")
	case template == invitation && strings.ContainsFunc(call.Payload.Link, notOfURL): // what follows one could be a link of its own
		err = errors.New("payload.link has a character that is percent-encoded in a URL")
	case template == invitation:
		one.Linked, one.Mail.Code, one.Mail.Data = true, "", map[string]string{"link": call.Payload.Link}
	}
	return "", []delivery.Send{one}, err
}

// origin returns the scheme and host of a URL, or nothing where it has none or a user.
func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// notOfURL reports whether a character cannot be in a URL, so that an email program may end a link at it.
func notOfURL(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }

// Answer says what became of the email. Logto shows its visitor an error and logs the words.
func (*Logto) Answer(status int, words string) (code int, contentType string, body []byte) {
	return status, "text/plain; charset=utf-8", []byte(words)
}
