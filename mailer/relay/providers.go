package relay

import "strings"

// subject is what a refusal is about.
type subject int

const (
	aboutMail    subject = iota // this email or its recipient
	aboutUs                     // any email from this server: policy, quota, sender
	aboutCommand                // the command, whatever the recipient
	aboutLoad                   // other connections that are sending
)

// refusals says what a reply is about. The first row decides whose given fields all match. Words are
// in lower case and have a space, so that an address in a reply matches none.
var refusals = []struct {
	code     int
	enhanced string // a prefix if it ends in a dot
	words    string
	about    subject
}{
	{code: 432, about: aboutLoad},    // Microsoft 365, beyond three connections
	{code: 530, about: aboutCommand}, // authentication required
	{code: 503, about: aboutCommand}, // some servers say it for 530
	{code: 502, about: aboutCommand},
	{code: 504, about: aboutCommand}, // Postfix, of a HELO name

	{enhanced: "5.7.", about: aboutUs},                                           // RFC 3463: policy, as in "554 5.7.1 Relay access denied"
	{enhanced: "5.3.", about: aboutUs},                                           // RFC 3463: the state of the relay
	{enhanced: "5.4.5", about: aboutUs},                                          // Google: daily user sending limit exceeded
	{enhanced: "5.1.7", about: aboutUs},                                          // RFC 3463: the sender's address
	{enhanced: "5.1.8", about: aboutUs},                                          // Microsoft 365: bad outbound sender
	{enhanced: "5.2.252", about: aboutUs},                                        // Microsoft 365: may not send as this sender
	{enhanced: "5.2.0", words: "storedrv.submission.exception:", about: aboutUs}, // the same
	{words: "relay not permitted", about: aboutUs},                               // Exim
	{words: "not permitted to relay", about: aboutUs},                            // Exim
	{words: "sender verify failed", about: aboutUs},                              // Exim
	{words: "message size exceeds", about: aboutUs},                              // Exim, Postfix
	{words: "sender address rejected", about: aboutUs},                           // Postfix, under 5.1.0
	{words: "helo command rejected", about: aboutUs},                             // Postfix, under 5.5.2
	{words: "relaying denied", about: aboutUs},                                   // many
	{words: "relaying disallowed", about: aboutUs},                               // Zoho, of a sender that is not its user
	{words: "email address is not verified", about: aboutUs},                     // Amazon SES
	{words: "sending paused for this account", about: aboutUs},                   // Amazon SES
	{words: "from address does not match a verified sender", about: aboutUs},     // SendGrid
}

func (r Reply) about() subject {
	text := strings.ToLower(r.Message)
	for _, row := range refusals {
		matches := r.Enhanced == row.enhanced || row.enhanced == "" || strings.HasSuffix(row.enhanced, ".") && strings.HasPrefix(r.Enhanced, row.enhanced)
		if matches && (row.code == 0 || row.code == r.Code) && strings.Contains(text, row.words) {
			return row.about
		}
	}
	return aboutMail
}

// outcome returns the outcome of a refusal. Before RCPT even a 5xx is not about the email.
func (r Reply) outcome(step Step) Outcome {
	about := r.about()
	switch {
	case step != StepRCPT && step != StepDATA && step != StepFinalDot, about == aboutCommand:
		return Unavailable
	case r.Code/100 == 5 && about == aboutMail:
		return Rejected
	case step == StepRCPT:
		return Deferred
	}
	return Unavailable
}

// eximMails is how many emails of one connection Exim delivers at once as it is installed
// (smtp_accept_queue_per_connection). It takes more and says nothing, but leaves them for
// its next queue run, half an hour later.
const eximMails = 10
