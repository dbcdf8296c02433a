package api_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
)

// A connection on which nothing was sent is no request in the log and the metrics.
func TestConnections_Silent_AreNoRequests(t *testing.T) {
	const ask, half = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "GET /livez HT"
	hangUp := func(w *wire) {
		w.Conn.(*net.TCPConn).CloseWrite()
		w.ended(1 << 10)
	}
	reset := func(w *wire) {
		w.Conn.(*net.TCPConn).SetLinger(0)
		w.Close()
	}
	outlast := func(w *wire) { w.ended(1 << 10) }
	unanswered := func(w *wire) { w.ended(0) } // an answer would be one without a request, and without an id
	stay := func(*wire) {}
	const patient, hasty = 0, 500 * time.Millisecond
	for _, tt := range []struct {
		name string
		wait time.Duration
		said string
		end  func(*wire)
		want int // requests, beside that of the next connection
	}{
		{"silent, then closed", patient, "", hangUp, 0},
		{"silent, then reset", patient, "", reset, 0},
		{"silent until its time is up", hasty, "", unanswered, 0},
		{"silent until the server ends", patient, "", stay, 0},
		{"half a request, then closed", patient, half, hangUp, 1},
		{"half a request, and its time is up", hasty, half, outlast, 1},
		{"garbage", patient, "\x16\x03\x01\r\n\r\n", outlast, 1},
		{"a request, then silent until its time is up", hasty, ask, outlast, 1},
		{"a request and a half, and its time is up", hasty, ask + half, outlast, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := newRecord()
			r := newRig(t, setup{read: tt.wait, idle: tt.wait, options: func(o *api.Options) { o.Log = log.logger() }})
			w := r.dial()
			w.write(tt.said)
			if strings.HasPrefix(tt.said, ask) {
				w.read("GET", "/livez").is(t, 200, "")
			}
			tt.end(w)
			next := r.dial() // accepted after the first
			next.write(ask)
			next.read("GET", "/livez").is(t, 200, "")
			r.shutdown()
			logged, counted := strings.Count(log.text(), `"msg":"request"`)-1, r.requests()-1
			if logged != tt.want || counted != tt.want {
				t.Errorf("%d requests are logged and %d counted, want %d:\n%s", logged, counted, tt.want, log.text())
			}
		})
	}
}

// requests is how many the metrics have counted.
func (r *rig) requests() (all int) {
	r.t.Helper()
	for _, family := range must(r.options.Metrics.Gather())(r.t) {
		if family.GetName() != "mailgate_http_requests_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			all += int(series.GetCounter().GetValue())
		}
	}
	return all
}
