package main

import (
	"crypto/tls"
	"sync/atomic"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

// certificate is the one that the SMTP door shows. SIGHUP reads it again.
type certificate struct {
	inForce atomic.Pointer[tls.Certificate]
}

// read reads the files of the settings, if they have any.
func (t *certificate) read(c *config.Config) error {
	if c.SubmissionTLSCert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.SubmissionTLSCert, c.SubmissionTLSKey)
	if err != nil {
		return c.Complain("submission-tls-cert", err.Error())
	}
	t.inForce.Store(&pair)
	return nil
}

// config returns nil without a certificate.
func (t *certificate) config() *tls.Config {
	if t.inForce.Load() == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.inForce.Load(), nil }}
}
