package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// receiver is a collector of OpenTelemetry, over HTTP.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	raw   []byte
	of    []string // the attributes of the process
	spans []*spans.Span
}

func startReceiver(t testing.TB) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var export collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &export)
		}
		if err != nil || request.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", request.URL.Path, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raw = append(r.raw, body...)
		for _, resource := range export.ResourceSpans {
			for _, a := range resource.Resource.Attributes {
				r.of = append(r.of, a.Key+"="+a.Value.GetStringValue())
			}
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

// trace waits until the spans of a trace have come, and returns each as its name, its parent's, its words and its
// events.
func (r *receiver) trace(t testing.TB, id string, n int) (all []string) {
	t.Helper()
	servertest.Await(t, fmt.Sprintf("%d spans of %s", n, id), time.Minute, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		all = nil
		names := map[string]string{}
		for _, s := range r.spans {
			names[string(s.SpanId)] = s.Name
		}
		for _, s := range r.spans {
			if fmt.Sprintf("%x", s.TraceId) != id {
				continue
			}
			text := s.Name + " of " + names[string(s.ParentSpanId)]
			for _, a := range s.Attributes {
				if a.Key != "relay" {
					text += " " + a.Key + "=" + a.Value.GetStringValue()
				}
			}
			for _, e := range s.Events {
				text += fmt.Sprintf(" %s:%d", e.Name, e.Attributes[0].Value.GetIntValue())
			}
			all = append(all, text)
		}
		if len(all) != n {
			return fmt.Errorf("%d have come", len(all))
		}
		return nil
	})
	slices.Sort(all)
	return all
}

// A collector gets what each part of a request took, through every door; a caller's trace goes on if it has a
// key. Nothing of it is private.
func TestServe_Collector_GetsTheSpansOfARequest(t *testing.T) {
	t.Parallel()
	otel := startReceiver(t)
	relay := startRelay(t)
	p := startServer(t, settingsFor(relay.URL(), inMemory, "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0",
		"OTEL_EXPORTER_OTLP_ENDPOINT="+otel.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_RESOURCE_ATTRIBUTES=service.instance.id=node-1"))
	app := newClient(t, p.URL, apiKey)
	const parent = "4bf92f3577b34da6a3ce929d0e0e4736"
	header := http.Header{"Traceparent": {"00-" + parent + "-00f067aa0ba902b7-01"}}
	if sent := must.Get(app.ask("POST", "/send-code", bodyFor("alice@example.com"), header))(t); sent.Status != 200 {
		t.Fatal(sent.Raw)
	}
	want := []string{"compose of send-code", "decision of send-code rule=mailbox limit=minute outcome=allowed",
		"relay of send-code outcome=sent connect:0 banner:220 EHLO:250 MAIL:250 RCPT:250 DATA:354 final dot:250", "send-code of  door=http rule=mailbox limit=minute status=200 outcome=sent"}
	if got := otel.trace(t, parent, 4); !slices.Equal(got, want) {
		t.Errorf("the spans are\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	app.mustVerify(t, "alice@example.com", sixDigits.FindString(relay.List()[0].Text), 200)
	if other := must.Get(newClient(t, p.URL, "").ask("POST", "/send-code", bodyFor("bob@example.com"), header))(t); other.Status != 401 {
		t.Errorf("without a key: %d", other.Status)
	}
	if refused := must.Get(app.ask("POST", "/send-code", bodyFor("alice@example.com"), nil))(t); refused.Status != 429 {
		t.Errorf("the second email: %d", refused.Status)
	}
	_ = submit(p.awaitLine(t, "serving", "smtp_address"))
	for message, want := range map[string]string{
		`"problem":"quota-exceeded"`: "decision of send-code rule=mailbox limit=minute outcome=quota-exceeded\nsend-code of  door=http problem=quota-exceeded rule=mailbox limit=minute status=429 outcome=quota-exceeded",
		`"msg":"submission"`:         "decision of smtp rule=mailbox limit=minute outcome=quota-exceeded\nsmtp of  quota-exceeded:0",
	} {
		servertest.Eventually(t, message, func() bool { return len(p.Log.Lines(message)) == 1 })
		id, _ := p.Log.Lines(message)[0]["trace_id"].(string)
		if got := strings.Join(otel.trace(t, id, 2), "\n"); id == parent || got != want {
			t.Errorf("the spans are\n%s, want\n%s", got, want)
		}
	}
	if status := p.Stop(t, syscall.SIGTERM); status != exitOK {
		t.Errorf("exit status %d", status)
	}
	otel.trace(t, parent, 4) // no more, though a client without a key sent it
	if !slices.Contains(otel.of, "service.name=mailgate") || !slices.Contains(otel.of, "service.instance.id=node-1") {
		t.Errorf("the spans are those of %v", otel.of)
	}
	for _, private := range []string{"alice", "bob", "example.com", sixDigits.FindString(relay.List()[0].Text), apiKey} {
		if bytes.Contains(otel.raw, []byte(private)) {
			t.Errorf("the collector got %q", private)
		}
	}
}

// A collector that takes nothing costs no request anything, and the end of the process a second.
func TestServe_CollectorSilent_NothingWaits(t *testing.T) {
	t.Parallel()
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	p := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+silent.Addr().String(),
		"OTEL_BSP_SCHEDULE_DELAY=1", "OTEL_BSP_MAX_QUEUE_SIZE=2", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1", "OTEL_BSP_EXPORT_TIMEOUT=100"))
	app := newClient(t, p.URL, apiKey)
	began := time.Now()
	for n := range 20 {
		app.mustSend(t, fmt.Sprintf("user%d@example.com", n), 200)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("20 sends took %s", took)
	}
	p.awaitLine(t, "traces are dropped, as their collector does not take them; this is said once a minute", "cause")
	began = time.Now()
	if status := p.Stop(t, syscall.SIGTERM); status != exitOK || time.Since(began) > 10*time.Second {
		t.Errorf("exit status %d after %s", status, time.Since(began))
	}
}
