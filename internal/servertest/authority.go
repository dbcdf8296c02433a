package servertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority is a certificate authority for one test. Its key never leaves memory.
type Authority struct {
	t    testing.TB
	self *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that is valid for ten years around now.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t)}
	now := time.Now()
	a.self = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "mailgate test authority"}, NotBefore: now.AddDate(-5, 0, 0), NotAfter: now.AddDate(5, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key)
	return a
}

// PEM returns the authority's certificate, as a client's trust file holds it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.self.Raw})
}

// Certificate returns a server's for hosts, names or IP addresses, and valid from and to these
// Unix milliseconds. A past window makes an expired one.
func (a *Authority) Certificate(from, to int64, hosts ...string) tls.Certificate {
	a.t.Helper()
	form := &x509.Certificate{
		Subject: pkix.Name{CommonName: "mailgate test server"}, NotBefore: time.UnixMilli(from), NotAfter: time.UnixMilli(to),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			form.IPAddresses = append(form.IPAddresses, ip)
		} else {
			form.DNSNames = append(form.DNSNames, host)
		}
	}
	key := newKey(a.t)
	return tls.Certificate{Certificate: [][]byte{a.sign(form, key).Raw}, PrivateKey: key}
}

// sign makes the certificate of a key; the authority's own is signed by itself.
func (a *Authority) sign(form *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	form.SerialNumber = big.NewInt(time.Now().UnixNano())
	parent := a.self
	if parent == nil {
		parent = form
	}
	der, err := x509.CreateCertificate(rand.Reader, form, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
