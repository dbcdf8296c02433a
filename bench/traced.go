package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// tracedSends compares admitted sends of mailgate, of which one in a hundred is traced, with those of one that traces
// none.
func tracedSends(b *bench) []row {
	var spans atomic.Int64 // octets of them
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		spans.Add(n)
	}))
	b.later(collector.Close)
	relay := b.openSink()
	with, _ := b.newDataDir()
	without, _ := b.newDataDir()
	ours := b.startMailgate(relay.addr, with, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL,
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.01", "OTEL_BSP_SCHEDULE_DELAY=100")
	plain := b.startMailgate(relay.addr, without)
	samples := b.admitted(each, ours, plain)
	ours.stop() // sends what is left
	if spans.Load() == 0 {
		check(fmt.Errorf("the collector got no span"))
	}
	return []row{compare("admitted send, 1 % traced, processor", "µs", "not traced", processor, samples[0], samples[1], atMost(1.03))}
}
