package api_test

import (
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
)

// A client that requests pages without a key and reads none of them takes little more memory than a
// silent one: there is one copy of a page for all.
func TestOpenAPI_Unread_TakesLittleMemory(t *testing.T) {
	const clients, most = 100, 64 << 10
	r := newRig(t, setup{alone: true, options: func(o *api.Options) { o.Log = slog.New(slog.DiscardHandler) }}) // the log of all tests would grow
	const ask = "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n"
	first := r.dial()
	first.write(ask)
	if size := len(first.read("GET", "/openapi.yaml").text); size < most/2 {
		t.Fatalf("the page has %d bytes, too few for this test", size)
	}
	before := heap()
	for range clients {
		w := r.dial()
		if err := w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		w.write(strings.Repeat(ask, 60)) // whose answers are more than the sockets hold
		must(w.reader.Peek(1))(t)
	}
	if each := (heap() - before) / clients; each > most {
		t.Errorf("each of them takes %d bytes, want at most %d", each, most)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
