package hooks

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/mailgate/mailgate/delivery"
)

// Logto is the hook of Logto's HTTP email connector.
type Logto struct {
	genuine func(*Call) error
	origin  string
}

// NewLogto makes the hook. Its calls have this Authorization, and invitations lead to this site only; without
// one they are refused.
func NewLogto(authorization, site string) *Logto {
	return &Logto{authorized(strings.TrimSpace(authorization)), origin(site)}
}

// Name returns "logto".
func (*Logto) Name() string { return "logto" }

// Genuine checks the Authorization, which Logto sends as it was entered there.
func (l *Logto) Genuine(c *Call) error { return l.genuine(c) }

const invitation = "logto-organization-invitation"

// logtoTemplates are the emails by type.
var logtoTemplates = map[string]string{
	"SignIn": "logto-sign-in", "Register": "logto-register", "ForgotPassword": "logto-forgot-password", "OrganizationInvitation": invitation,
	"Generic": "logto-generic", "Test": "logto-generic", "UserPermissionValidation": "logto-user-permission-validation",
	"BindNewIdentifier": "logto-bind-new-identifier", "MfaVerification": "logto-mfa-verification", "BindMfa": "logto-bind-mfa",
}

// Emails returns the email of a call. Logto calls once.
func (l *Logto) Emails(c *Call) (emails []delivery.Send, by time.Time, err error) {
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
	if err := read(c.Body, &call); err != nil {
		return nil, by, err
	}
	template, known := logtoTemplates[call.Type]
	if !known {
		return nil, by, unknownKind("type", call.Type)
	}
	one, err := email(c.Identity, "to", call.To, call.IP)
	if err != nil {
		return nil, by, err
	}
	one.Mail.Template, one.Mail.Locale = template, call.Payload.Locale
	if template == invitation {
		one.Linked, one.Mail.Data = true, map[string]string{"link": call.Payload.Link}
		return []delivery.Send{one}, by, l.check(call.Payload.Link)
	}
	if one.Mail.Code = call.Payload.Code; one.Mail.Code == "" { // one would be issued that Logto does not know
		err = errors.New("payload.code is missing")
	}
	return []delivery.Send{one}, by, err
}

// check refuses an invitation that leads to another site, or that an email program might show as doing so.
func (l *Logto) check(link string) error {
	if l.origin == "" || origin(link) != l.origin {
		return errors.New("payload.link does not lead to MAILGATE_HOOK_LOGTO_URL")
	}
	if strings.ContainsFunc(link, NotOfURL) {
		return errors.New("payload.link has a character that is percent-encoded in a URL")
	}
	return nil
}

// origin returns the scheme and host of a URL, or nothing where it has none or a user.
func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// Answer says what became of the email. Logto shows its visitor an error and logs the words.
func (*Logto) Answer(status int, words string) (code int, contentType string, body []byte) {
	return status, "text/plain; charset=utf-8", []byte(words)
}
