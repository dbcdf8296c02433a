package mailtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// writeCertificates makes an authority for this one server, and the server's
// certificate for 127.0.0.1 and localhost. The authority's key is forgotten.
func (s *Server) writeCertificates() error {
	authority, authorityKey, err := issue(nil, nil, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "mailtest authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	})
	if err != nil {
		return err
	}
	certificate, key, err := issue(authority, authorityKey, &x509.Certificate{
		Subject:     pkix.Name{CommonName: hostName},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:    []string{"localhost"},
	})
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding a key: %w", err)
	}
	for _, file := range []struct {
		path, kind string
		der        []byte
	}{
		{s.CA, "CERTIFICATE", authority.Raw},
		{filepath.Join(s.dir, "server.pem"), "CERTIFICATE", certificate.Raw},
		{filepath.Join(s.dir, "server.key"), "PRIVATE KEY", private},
	} {
		text := pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.der})
		if err := os.WriteFile(file.path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// issue makes a key and its certificate, signed by the parent or, without one,
// by itself. It is valid for a day around now.
func issue(parent *x509.Certificate, parentKey *ecdsa.PrivateKey, form *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	if parent == nil {
		parent, parentKey = form, key
	}
	form.SerialNumber = big.NewInt(time.Now().UnixNano())
	form.NotBefore, form.NotAfter = time.Now().Add(-12*time.Hour), time.Now().Add(12*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, form, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading back a certificate: %w", err)
	}
	return certificate, key, nil
}
