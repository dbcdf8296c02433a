package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

func TestTLS(t *testing.T) {
	server := redistest.Alone(t)
	certificate, ca := selfSigned(t)
	front := frontWithTLS(t, server.Addr, certificate)
	for name, tt := range map[string]struct {
		url      string
		answered bool
	}{
		"an authority that is trusted":          {"rediss://" + front + "?ca=" + ca, true},
		"a certificate that nobody vouches for": {"rediss://" + front, false},
		"a server without TLS":                  {"rediss://" + server.Addr + "?ca=" + ca, false},
	} {
		store := open(t, redisstore.Options{URL: tt.url, Timeout: 2 * time.Second})
		if _, err := ask(t, store, "tls"); (err == nil) != tt.answered {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// selfSigned makes a certificate for 127.0.0.1 and the file that vouches for it.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// frontWithTLS ends TLS before a server, and returns the address to connect to.
func frontWithTLS(t *testing.T, target string, certificate tls.Certificate) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	var links sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		links.Wait()
	})
	links.Go(func() {
		for {
			outside, err := listener.Accept()
			if err != nil {
				return
			}
			links.Go(func() { join(outside, target) })
		}
	})
	return listener.Addr().String()
}

func join(outside net.Conn, target string) {
	defer outside.Close()
	inside, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer inside.Close()
	go func() {
		io.Copy(inside, outside)
		inside.Close()
	}()
	io.Copy(outside, inside)
}
