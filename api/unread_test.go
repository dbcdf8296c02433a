package api_test

import (
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
)

// Whoever asks for pages without a key and reads none of them costs little more than a
// connection that is silent: the page is there once for all.
func TestPagesThatNobodyReads(t *testing.T) {
	const clients, most = 100, 64 << 10
	// The log of all tests grows by more than this is about.
	r := newRig(t, setup{options: func(o *api.Options) { o.Log = quiet() }})
	ask := strings.Repeat("GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n", 60) // more than the sockets hold
	first := r.dial()
	first.write("GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n")
	if size := len(first.read("GET", "/openapi.yaml").text); size < most/2 {
		t.Fatalf("the page has %d bytes, and the test no sense", size)
	}
	before := heap()
	for range clients {
		w := r.dial()
		if err := w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		w.write(ask)
		if _, err := w.reader.Peek(1); err != nil { // the answers are under way
			t.Fatal(err)
		}
	}
	if each := (heap() - before) / clients; each > most {
		t.Errorf("each of them holds %d bytes, want at most %d", each, most)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
