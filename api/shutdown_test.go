package api_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/prometheus/client_golang/prometheus"
)

// The server is not ready at once and accepts no new connections; requests in progress are finished.
func TestShutdown_RequestsInProgress_AreFinished(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.Relay = sender
		o.DrainDelay = 2 * time.Second
	}})
	idle := r.dial(livez)
	idle.read("GET", "/livez")
	answer := make(chan reply, 1)
	go func() { answer <- r.send("patient@example.com") }()
	<-sender.entered

	down := make(chan error, 1)
	go func() { down <- r.ShutdownWithin(context.Background()) }()
	var got reply
	servertest.Eventually(t, "/readyz is 503", func() bool {
		got = r.do("GET", "/readyz", "", "")
		return got.status == 503
	})
	got.is(t, 503, "not-ready")
	if got.header.Get("Connection") != "close" && !strings.Contains(got.text, "shutting down") {
		t.Errorf("%v %s", got.header, got.text)
	}
	idle.ended(0)
	if c, err := net.Dial("tcp", r.Addr); err == nil {
		c.Close()
		t.Error("a new connection was taken")
	}
	select {
	case err := <-down:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	close(sender.leave)
	if got := <-answer; got.status != 200 {
		t.Errorf("answered %d %s", got.status, got.text)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-r.Served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// Silent connections and unfinished requests delay a shutdown by their timeout only.
func TestShutdown_SilentClients_AreNotWaitedFor(t *testing.T) {
	t.Parallel()
	const grace, short = 8 * time.Second, 2 * time.Second
	for name, tt := range map[string]struct {
		said   string
		read   time.Duration
		within time.Duration
	}{
		"silent from the start":     {"", time.Minute, grace}, // after 5 s it counts as idle
		"silent after a request":    {livez, time.Minute, 3 * time.Second},
		"in the middle of a header": {"GET /livez HT", short, grace},
		"in the middle of a body":   {"POST /send-code HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{", short, grace},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{read: tt.read})
			r.dial(tt.said)
			servertest.Eventually(t, "the connection is open, or has timed out", func() bool {
				text := r.has(t)
				return strings.Contains(text, "mailgate_http_connections 2\n") || strings.Contains(text, `route="unread"`)
			})
			began := time.Now()
			r.shutdown()
			if took := time.Since(began); took > tt.within {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// When its time is up Shutdown cuts off what is left. A send whose email may have left stays charged.
func TestShutdown_EmailMayHaveLeft_DeliveryUnknown(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *apitest.Options) { o.Relay = sender }})
	c := r.dial("")
	c.send("cut-off@example.com")
	<-sender.entered
	r.cutOff(50 * time.Millisecond)
	c.read("POST", "/send-code").is(t, 504, "delivery-unknown")
	c.ended(0)
	r.charged("cut-off@example.com", 1)
}

// A send that is cut off before its email can leave is given back by the end of Shutdown, as the
// history is closed then.
func TestShutdown_EmailNotHandedOver_GivenBack(t *testing.T) {
	r := newRig(t, setup{relay: &fault.Script{At: fault.RCPT, Kind: fault.Silence}})
	c := r.dial("")
	c.send("too-late@example.com")
	servertest.Eventually(t, "the send is charged", func() bool { return r.used("too-late@example.com") == 1 })
	r.cutOff(0)
	r.charged("too-late@example.com", 0)
}

// cutOff shuts the server down before its requests are answered.
func (r *rig) cutOff(after time.Duration) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	if err := r.ShutdownWithin(ctx); !errors.Is(err, context.DeadlineExceeded) {
		r.t.Errorf("Shutdown: %v", err)
	}
}

func TestServe_OutOfOrder_EndsCleanly(t *testing.T) {
	r := newRig(t, setup{})
	r.do("GET", "/livez", "", "").is(t, 200, "")
	r.shutdown()
	r.shutdown()

	o := r.Options
	o.Metrics = prometheus.NewRegistry()
	other := must.Get(api.New(o.Options))(t)
	if err := other.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown before Serve: %v", err)
	}
	late := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	if err := other.Serve(late); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
	if _, err := net.Dial("tcp", late.Addr().String()); err == nil {
		t.Error("the listener was left open")
	}
}
