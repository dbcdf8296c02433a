package mailtest

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
)

// writeCertificates makes an authority for this one server, and the server's
// certificate for 127.0.0.1 and localhost. The authority's key is forgotten.
func (s *Server) writeCertificates(t testing.TB) {
	t.Helper()
	const halfDay = 12 * 60 * 60 * 1000
	now := time.Now().UnixMilli()
	authority := servertest.NewAuthority(t)
	server := authority.Certificate(now-halfDay, now+halfDay, "127.0.0.1", "localhost")
	key, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string][]byte{
		s.CA:                               authority.PEM(),
		filepath.Join(s.dir, "server.pem"): pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate[0]}),
		filepath.Join(s.dir, "server.key"): pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
