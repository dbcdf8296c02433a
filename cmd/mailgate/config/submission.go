package config

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/submission"
)

type (
	// Doors are the addresses of the SMTP door.
	Doors []Door
	// Names are names of API keys.
	Names []string
)

// Door is one address of the SMTP door.
type Door struct {
	Addr     string
	Implicit bool // it speaks TLS from the first byte
}

// Private reports whether only this machine can reach the door.
func (d Door) Private() bool { return isLoopback(d.Addr) }

func (d Door) String() string {
	if d.Implicit {
		return "smtps://" + d.Addr
	}
	return d.Addr
}

func isLoopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func parseDoor(text string) (Door, error) {
	addr, implicit := strings.CutPrefix(text, "smtps://")
	if !isListenAddress(addr) {
		return Door{}, errors.New("must be host:port, such as 127.0.0.1:2525 or smtps://:465, or several with commas")
	}
	return Door{addr, implicit}, nil
}

func parseSender(text string) (string, error) {
	whole := text
	if strings.HasPrefix(text, "@") {
		whole = "any" + text
	}
	parsed, err := address.Parse(whole, address.Identity{})
	if err != nil {
		return "", errors.New("must be addresses and @domains, such as no-reply@acme.example,@news.acme.example: " + err.Error())
	}
	return strings.ToLower(strings.TrimPrefix(parsed.String(), strings.TrimSuffix(whole, text))), nil
}

func parseName(text string) (string, error) { return text, nil }

func (d Doors) String() string { return join(d, Door.String, ",") }
func (n Names) String() string { return strings.Join(n, ",") }

func join[T any](all []T, text func(T) string, between string) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, text(one))
	}
	return strings.Join(texts, between)
}

// SMTPSenders returns who may be the sender of an email that comes by SMTP.
func (c *Config) SMTPSenders() submission.Senders {
	if len(c.SubmissionSenders) > 0 {
		return c.SubmissionSenders
	}
	return submission.Senders{strings.ToLower(c.From.Address.String())}
}

// submissionRules are those that the settings of the SMTP door keep together.
func (c *Config) submissionRules() []rule {
	certificate := c.SubmissionTLSCert != ""
	public := slices.ContainsFunc(c.SubmissionListen, func(d Door) bool { return !d.Private() })
	implicit := slices.ContainsFunc(c.SubmissionListen, func(d Door) bool { return d.Implicit })
	all := []rule{
		{certificate != (c.SubmissionTLSKey != ""), "submission-tls-cert", "and MAILGATE_SUBMISSION_TLS_KEY must be set together"},
		{public && !certificate, "submission-tls-cert", "must be set to listen beyond this machine"},
		{implicit && !certificate, "submission-tls-cert", "must be set for smtps://"},
		{public && c.APIKeys.IsZero(), "api-keys", "must be set to listen on " + c.SubmissionListen.String() + "; without keys, mailgate serves on loopback only"},
	}
	for _, name := range c.SubmissionDefer {
		all = append(all, rule{!slices.Contains(c.APIKeys.Names(), name), "submission-defer", "names a key that is not in api_keys"})
	}
	return all
}
