package api_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
)

// Shutdown under load: whoever was answered 200 was sent exactly one mail, and whoever
// was not answered was sent none.
func TestShutdownUnderLoad(t *testing.T) {
	r := newRig(t, setup{})
	crowd := &crowd{answered: map[string]int{}}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() { crowd.sendOn(r, "load-"+string(rune('a'+worker))) })
	}
	servertest.Eventually(t, "some sends are through", func() bool { return crowd.count() > 100 })
	r.shutdown()
	wg.Wait()
	mails := map[string]int{}
	for _, mail := range r.box.List() {
		mails[mail.To[0]]++
	}
	for email, status := range crowd.answered {
		want := map[int]int{200: 1}[status]
		if mails[email] != want {
			t.Errorf("%s was answered %d and sent %d mails", email, status, mails[email])
		}
		delete(mails, email)
	}
	if len(mails) > 0 {
		t.Errorf("%d mails were sent and nobody told", len(mails))
	}
	if err := <-r.served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A crowd sends to one mailbox after the other until the server is gone.
type crowd struct {
	mu       sync.Mutex
	answered map[string]int // the status by address, 0 for no answer
}

func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.answered)
}

func (c *crowd) sendOn(r *rig, name string) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for i := 1; ; i++ {
		email := name + "-" + strconv.Itoa(i) + "@example.com"
		status, err := post(transport, r.url+"/send-code", `{"email":"`+email+`"}`)
		c.mu.Lock()
		c.answered[email] = status
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// post sends once, past the recorder, and reads the whole answer.
func post(transport *http.Transport, url, body string) (status int, err error) {
	request, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header = http.Header{"Authorization": {"Bearer " + appKey}, "Content-Type": {"application/json"}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}

// gated is a sender that waits to be let go, or for its request to be cut off.
type gated struct {
	entered, leave chan struct{}
}

func newGated() *gated { return &gated{entered: make(chan struct{}, 1), leave: make(chan struct{})} }

func (g *gated) Begin(context.Context, address.Address, address.Address) (delivery.Transaction, error) {
	return g, nil
}

func (*gated) Abort() {}

func (g *gated) Commit(ctx context.Context, _ []byte) (relay.Receipt, error) {
	g.entered <- struct{}{}
	select {
	case <-g.leave:
		return relay.Receipt{}, nil
	case <-ctx.Done():

		return relay.Receipt{}, &relay.Error{Outcome: relay.Unknown, Err: ctx.Err()}
	}
}

// At once not ready, no new connections, and what is under way is finished.
func TestShutdownFinishesWhatIsUnderWay(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *api.Options) {
		o.Relay = sender
		o.DrainDelay = 2 * time.Second
	}})
	idle := r.dial()
	idle.write("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	idle.read("GET", "/livez")
	answer := make(chan reply, 1)
	go func() { answer <- r.send("patient@example.com") }()
	<-sender.entered

	down := make(chan error, 1)
	go func() { down <- r.server.Shutdown(context.Background()) }()
	var got reply
	servertest.Eventually(t, "/readyz says no", func() bool {
		got = r.do("GET", "/readyz", "", "")
		return got.status == 503
	})
	got.is(t, 503, "not-ready")
	if got.header.Get("Connection") != "close" && !strings.Contains(got.text, "shutting down") {
		t.Errorf("%v %s", got.header, got.text)
	}
	idle.ended(0)
	if c, err := net.Dial("tcp", r.addr); err == nil {
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
	if err := <-r.served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// Clients that say nothing, or do not finish what they say, hold nothing up for long.
func TestShutdownDoesNotWaitForTheSilent(t *testing.T) {
	const grace, short = 8 * time.Second, 2 * time.Second
	const header, body = "GET /livez HT", "POST /send-code HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
	tests := []struct {
		name, said string
		reads      time.Duration // how long a request may take to arrive
		within     time.Duration
	}{
		{"silent from the start", "", time.Minute, grace}, // after 5 s it counts as idle
		{"silent after a request", livez, time.Minute, 3 * time.Second},
		{"in the middle of a header", header, short, grace},
		{"in the middle of a body", body, short, grace},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, setup{options: func(o *api.Options) { o.ReadTimeout, o.IdleTimeout = tt.reads, time.Minute }})
			r.dial().write(tt.said)
			servertest.Eventually(t, "the connection is there, or its time was up already", func() bool {
				text := r.do("GET", "/metrics", "", "").text
				return strings.Contains(text, "mailgate_http_connections 2\n") || strings.Contains(text, `route="unread"`)
			})
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			began := time.Now()
			if err := r.server.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			if took := time.Since(began); took > tt.within {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// When its time is up, Shutdown cuts off what is left, and says so.
func TestShutdownCutsOff(t *testing.T) {
	sender := newGated()
	r := newRig(t, setup{options: func(o *api.Options) { o.Relay = sender }})
	c := r.dial()
	c.send("cut-off@example.com")
	<-sender.entered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := r.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	c.read("POST", "/send-code").is(t, 504, "delivery-unknown")
	c.ended(0)
	if r.used("cut-off@example.com") != 1 {
		t.Error("a mail that may have left was not charged")
	}
}

// A send that is cut off before its mail can leave is given back by the end of Shutdown,
// however little time that has: the history is closed then. A machine that stands still may
// use up all of that time once.
func TestShutdownGivesBackWhatItCutsOff(t *testing.T) {
	for range 2 {
		if leftTaken(t) == 0 {
			return
		}
	}
	t.Error("the place was not given back")
}

// leftTaken cuts off a send that holds a place, and returns how many are taken afterwards.
func leftTaken(t *testing.T) int {
	t.Helper()
	r := newRig(t, setup{relay: &fault.Script{At: fault.RCPT, Kind: fault.Silence}})
	c := r.dial()
	c.send("too-late@example.com")
	servertest.Eventually(t, "the place is taken", func() bool { return r.used("too-late@example.com") == 1 })
	grace, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	if err := r.server.Shutdown(grace); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	return r.used("too-late@example.com")
}

// What is to be given back when nobody is left to do it, is in the log.
func TestRefundAfterShutdown(t *testing.T) {
	ids, leave := make(chan string, 1), make(chan struct{})
	r, store := newFailing(t, setup{options: func(o *api.Options) {
		o.Relay = fakeSender(func(_ context.Context, m message.Message) error {
			ids <- m.ID[1:9]
			<-leave
			return relay.ErrUnsendable
		})
	}})
	store.release.Store(true)
	c := r.dial()
	c.send("nobody@example.com")
	id := <-ids
	grace, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	if err := r.server.Shutdown(grace); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	close(leave)
	servertest.Eventually(t, "the log says that the place stays taken", func() bool {
		for line := range strings.Lines(journal.text()) {
			if strings.Contains(line, "could not be refunded") && strings.Contains(line, id) {
				return true
			}
		}
		return false
	})
}

// Serving and shutting down leaves nothing running.
func TestNothingIsLeftRunning(t *testing.T) {
	round := func() {
		r := newRig(t, setup{})
		r.send("round@example.com").is(t, 200, "")
		r.do("GET", "/livez", "", "").is(t, 200, "")
		r.client.CloseIdleConnections()
		r.shutdown()
	}
	round() // the libraries start what they keep for good
	before := serverGoroutines()
	for range 3 {
		round()
	}
	servertest.Eventually(t, "the goroutines are gone", func() bool { return serverGoroutines() <= before })
}

// serverGoroutines counts the goroutines of this package and of Fiber, but for those that
// clean up behind Fiber's workers: they look only every 10 s whether they are to end.
func serverGoroutines() int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	count := 0
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		cleans := strings.Contains(stack, "workerPool).Start.func")
		if !cleans && (strings.Contains(stack, "mailgate/api.") || strings.Contains(stack, "valyala/fasthttp")) {
			count++
		}
	}
	return count
}

// The ends that nobody plans.
func TestServeAndShutdownOutOfOrder(t *testing.T) {
	r := newRig(t, setup{})
	r.do("GET", "/livez", "", "").is(t, 200, "")
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	if err := r.server.Serve(l); err == nil {
		t.Error("a server served twice")
	}
	r.shutdown()
	r.shutdown()

	never := newRig(t, setup{}) // served by the rig; a second one that never is:
	other := must(api.New(api.Options{Live: never.live(setup{}), Relay: newGated()}))(t)
	if err := other.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown before Serve: %v", err)
	}
	late := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	if err := other.Serve(late); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
	if _, err := net.Dial("tcp", late.Addr().String()); err == nil {
		t.Error("the listener was left open")
	}
}
