package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
)

const floodKey = "flood-" + secret

// One key floods the server from more connections than it may work on at once, strangers
// hold idle and half-sent ones, and the relay takes its time. A caller beside them waits
// behind what the flood may have under way and gets every mail sent; and when all have gone
// nothing is left of it.
func TestOverload(t *testing.T) {
	relay := startFaulty(t, fault.Script{At: fault.Dot, Kind: fault.Drip, DripEvery: 5 * time.Millisecond})
	server := startServer(t, settingsFor(plain(relay), "MAILGATE_DATA_DIR="+t.TempDir(),
		"MAILGATE_API_KEYS=app:"+apiKey+",flood:"+floodKey, "MAILGATE_MAX_CONNECTIONS=400"))
	app := newClient(t, server.URL, apiKey)
	alone := medianSend(t, app, "alone")
	figure := func(name string) float64 {
		value, err := strconv.ParseFloat(metric(t, server, name), 64)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	goroutines, memory := figure("go_goroutines"), figure("process_resident_memory_bytes")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	strangers := hold(t, strings.TrimPrefix(server.URL, "http://"))
	other := newClient(t, server.URL, floodKey)
	refused, ended := flood(ctx, other)
	servertest.Eventually(t, "the flood to be refused", func() bool { return refused.Load() > 100 })
	beside := medianSend(t, app, "beside")
	more := figure("process_resident_memory_bytes") - memory
	t.Logf("a mail takes %v alone, %v beside the flood; %d requests refused; %.0f MB more", alone, beside, refused.Load(), more/1e6)
	if more > 256e6 { // with the race detector; without, it is a tenth
		t.Errorf("the flood takes %.0f MB", more/1e6)
	}

	cancel()
	ended.Wait()
	other.http.CloseIdleConnections()
	for _, c := range strangers {
		c.Close()
	}
	servertest.Eventually(t, "the goroutines to end", func() bool { return figure("go_goroutines") < goroutines+10 })
}

// medianSend is how long it takes to send a mail, one after the other.
func medianSend(t *testing.T, c client, who string) time.Duration {
	t.Helper()
	var took []time.Duration
	for n := range 5 {
		began := time.Now()
		c.mustSend(t, fmt.Sprintf("%s%d@example.com", who, n), 200)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// hold opens connections that never ask for anything, or never all of it.
func hold(t *testing.T, addr string) (held []net.Conn) {
	t.Helper()
	for n := range 300 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		begin := []string{"", "POST /send-code HTTP/1.1\r\nX-", "POST /send-code HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"}[n%3]
		if _, err := c.Write([]byte(begin)); err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	return held
}

// flood sends to ever new mailboxes from many connections until ctx ends, and counts what
// is refused as busy.
func flood(ctx context.Context, c client) (refused *atomic.Int64, ended *sync.WaitGroup) {
	refused, ended = new(atomic.Int64), new(sync.WaitGroup)
	for n := range 150 {
		ended.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				a, err := c.sendCode(fmt.Sprintf("flood%d.%d@example.com", n, i))
				if err == nil && a.Status == http.StatusServiceUnavailable && a.Body.Type == "urn:mailgate:problem:busy" {
					refused.Add(1)
					<-time.After(100 * time.Millisecond)
				}
			}
		})
	}
	return refused, ended
}
