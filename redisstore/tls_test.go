package redisstore_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/servertest"
)

func TestTLS(t *testing.T) {
	server := redistest.Alone(t)
	authority, ca := servertest.NewAuthority(t), filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	now, hour := time.Now().UnixMilli(), time.Hour.Milliseconds()
	front := frontWithTLS(t, server.Addr, authority.Certificate(now-hour, now+hour, "127.0.0.1"))
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
