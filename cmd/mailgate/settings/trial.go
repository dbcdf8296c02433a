package settings

import (
	"slices"
	"strings"

	"github.com/mailgate/mailgate/mailer/relay"
)

// What docker-compose.yml has for a trial: secrets, each with this end, that everybody can
// read there, and a relay that delivers nothing.
const (
	trialSecret = "-everybody-knows"
	trialRelay  = "mailpit:1025"
)

// ofTrial says what is wrong with a secret of the trial where mail can leave.
const ofTrial = "that of the trial in docker-compose.yml, which everybody knows; make one of your own, as with: openssl rand -hex 16"

// forReal reports whether there is a relay that may deliver.
func (s *Settings) forReal() bool {
	return slices.ContainsFunc(s.SMTPURL, func(relay relay.URL) bool { return relay.Addr() != trialRelay })
}

// known reports whether everybody knows the secret.
func (s Secret) known() bool { return strings.HasSuffix(string(s), trialSecret) }

// known reports whether everybody knows one of the secrets.
func (k Keys) known() bool {
	_, secrets := k.split()
	return slices.ContainsFunc(secrets, func(secret string) bool { return Secret(secret).known() })
}
