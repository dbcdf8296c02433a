package main

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/submission"
)

// openDoor makes the SMTP door beside the server, if the settings have one.
func (p *program) openDoor() error {
	c := p.config
	if len(c.SubmissionListen) == 0 {
		return nil
	}
	if err := p.certificate.read(c); err != nil {
		return err
	}
	_, domain, _ := strings.Cut(c.From.Address.String(), "@")
	p.door = submission.New(submission.Options{
		Delivery: p.delivery, Ledger: p.ledger, Proofs: p.proofs, Identity: p.identity,
		Repeats: idempotency.New(p.store.records("emails", idempotency.Merge, true), lease.Milliseconds()), Keys: c.APIKeys.Keys, Senders: c.SMTPSenders(), Defer: c.SubmissionDefer, Domain: domain,
		MaxBytes: int(c.SubmissionMaxBytes), MaxConnections: c.SubmissionMaxConnections, TLS: p.certificate.config(), Log: p.log, Tracer: p.tracer, Now: now, WrongKeys: p.wrongKeys,
	})
	promauto.With(p.metrics).NewGaugeFunc(prometheus.GaugeOpts{Name: "mailgate_smtp_connections", Help: "Open connections of the SMTP door."},
		func() float64 { return float64(p.door.Connections()) })
	return nil
}

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

// door is an open address of the SMTP door.
type door struct {
	listener net.Listener
	config.Door
}

// listenDoors opens the addresses of the SMTP door, all or none.
func listenDoors(c *config.Config) (all []door, err error) {
	for _, one := range c.SubmissionListen {
		l, err := net.Listen("tcp", one.Addr)
		if err != nil {
			return nil, errors.Join(cannotListen(c, "submission-listen", one.Addr, err), listeners{doors: all}.close())
		}
		all = append(all, door{l, one})
	}
	return all, nil
}

func addresses(all []door) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, one.listener.Addr().String())
	}
	return strings.Join(texts, ",")
}
