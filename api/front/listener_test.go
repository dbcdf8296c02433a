package front

import (
	"errors"
	"log/slog"
	"net"
	"testing"

	"golang.org/x/net/netutil"

	"github.com/mailgate/mailgate/internal/must"
)

// Connections that the system took before the end are served: a proxy has perhaps sent a request in one.
func TestListener_Close_ServesWhatIsPending(t *testing.T) {
	tcp := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &listener{Listener: netutil.LimitListener(tcp, 10), tcp: tcp.(*net.TCPListener), log: slog.New(slog.DiscardHandler)}
	for range 3 {
		defer must.Get(net.Dial("tcp", tcp.Addr().String()))(t).Close()
	}
	must.OK(t, l.Close())
	for i := range 3 {
		c, err := l.Accept()
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after them: %v", err)
	}
	if c, err := net.Dial("tcp", tcp.Addr().String()); err == nil {
		c.Close()
		t.Error("a further connection is taken")
	}
}
