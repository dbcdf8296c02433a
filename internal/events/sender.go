package events

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/webhook"
)

const (
	lanes    = 8                // posts at once
	patience = 10 * time.Second // with one
	lifetime = 24 * time.Hour   // of an event
	together = 256              // events that are written at once
	maxRead  = 64 << 10         // bytes of an answer that are read, so that its connection can be used again

	firstPause = time.Second // after a failure; each one doubles it
	maxPause   = 5 * time.Minute

	// refusals are the part of the journal that refused sends may fill: a flood of them leaves room for the
	// other events.
	refusals = 0.5
)

// sender posts the events of a journal. One goroutine has all of it, except that posts are goroutines that
// return a result.
type sender struct {
	with    Options
	events  *Events
	journal *journal
	client  *http.Client
	waiting prometheus.Gauge

	mailboxes map[string]*mailbox // with events that wait
	due       dueHeap             // those of them without a post in progress
	posting   int
	results   chan result
	failures  int   // in a row
	resume    int64 // no post begins before
	warned    bool
}

// mailbox has the events about one mailbox, which are posted one after the other.
type mailbox struct {
	hash   string
	events []event
	tries  int   // of the first
	due    int64 // when the first is posted
}

type result struct {
	of  *mailbox
	err error
}

func newSender(o Options, j *journal, e *Events) *sender {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxResponseHeaderBytes = lanes, maxRead
	return &sender{
		with: o, events: e, journal: j, mailboxes: map[string]*mailbox{}, results: make(chan result, lanes),
		client: &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mailgate_events_waiting", Help: "Events in the journal that the receiver has not taken yet."}),
	}
}

// run ends with life.
func (s *sender) run(life context.Context) {
	defer close(s.events.ended)
	for {
		wake := s.begin(life)
		select {
		case n := <-s.events.notes:
			s.record(n)
		case r := <-s.results:
			s.posted(r)
		case <-wake:
		case <-life.Done():
			s.finish()
			return
		}
	}
}

// begin begins the posts that are due, and returns when to look again.
func (s *sender) begin(life context.Context) <-chan time.Time {
	now := s.with.Now()
	for s.posting < lanes && len(s.due) > 0 && (s.failures < lanes || s.posting == 0) {
		if next := max(s.due[0].due, s.resume); next > now {
			return time.After(time.Duration(next-now) * time.Millisecond)
		}
		m := heap.Pop(&s.due).(*mailbox)
		if m.events[0].noted < now-lifetime.Milliseconds() {
			s.endFirst(m, droppedLate)
			continue
		}
		id, body, err := s.journal.read(m.events[0])
		if errors.Is(err, errLine) || errors.Is(err, cache.ErrCorrupt) {
			s.warn("an event is lost, as the journal cannot be read", err)
			s.endFirst(m, droppedDisk)
			continue
		}
		s.posting++
		if err != nil { // such as a directory that was moved
			s.posted(result{m, err})
			continue
		}
		go func() { s.results <- result{m, s.post(life, id, body, now)} }()
	}
	return nil
}

// post hands one event over.
func (s *sender) post(ctx context.Context, id string, body []byte, now int64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.with.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(now/1000, 10)
	var signatures []string
	for _, secret := range s.with.Secrets {
		signatures = append(signatures, webhook.Sign(secret, id, at, body))
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "mailgate", "webhook-id": id, "webhook-timestamp": at, "webhook-signature": strings.Join(signatures, " "),
	} {
		request.Header.Set(name, value)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxRead)
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answers with status %d", answer.StatusCode)
	}
	return nil
}

// posted notes what came of a post. A mailbox whose event failed waits on its own; when all fail, so do all, and
// then one post at a time is tried.
func (s *sender) posted(r result) {
	s.posting--
	if r.err == nil {
		if s.warned {
			s.with.Log.Info("the receiver takes events again")
		}
		s.failures, s.resume, s.warned = 0, 0, false
		s.endFirst(r.of, delivered)
		return
	}
	s.events.counts.WithLabelValues(failed).Inc()
	now := s.with.Now()
	if now >= s.resume { // posts that fail together are one failure
		s.failures++
		if s.failures >= lanes {
			s.resume = now + pause(s.failures-lanes)
			s.warn("the receiver does not take events: they are kept for a day, and posted again", r.err)
		}
	}
	r.of.due = now + pause(r.of.tries)
	r.of.tries++
	heap.Push(&s.due, r.of)
}

// pause returns how many milliseconds to wait after so many failures.
func pause(failures int) int64 {
	most := min(firstPause<<min(failures, 16), maxPause)
	return (most/2 + rand.N(most/2)).Milliseconds() // not all nodes at the same time
}

// warn says once what fails, until an event is delivered.
func (s *sender) warn(what string, err error) {
	if !s.warned {
		s.with.Log.LogAttrs(context.Background(), slog.LevelWarn, what, slog.String("cause", err.Error()))
	}
	s.warned = true
}

// record writes an event to the journal, and those that were noted meanwhile.
func (s *sender) record(n note) {
	ctx, wait := cache.Batch(context.Background())
	var added []event
	for {
		part := 1.0
		if n.frequent {
			part = refusals
		}
		e, err := s.journal.add(ctx, n, part)
		switch {
		case errors.Is(err, errFull):
			s.events.counts.WithLabelValues(droppedFull).Inc()
		case err != nil:
			s.lose(1, err)
		default:
			added = append(added, e)
		}
		if len(s.events.notes) == 0 || len(added) == together {
			break
		}
		n = <-s.events.notes
	}
	if err := wait(context.Background()); err != nil {
		s.lose(len(added), err)
		for _, e := range added {
			s.journal.size -= e.size
		}
		return
	}
	for _, e := range added {
		s.queue(e)
	}
}

// lose counts events that could not be written.
func (s *sender) lose(n int, err error) {
	s.warn("events are lost, as the journal cannot be written", err)
	s.events.counts.WithLabelValues(droppedDisk).Add(float64(n))
}

// queue has an event posted after the others about its mailbox.
func (s *sender) queue(e event) {
	s.waiting.Inc()
	m := s.mailboxes[e.mailbox]
	if m == nil {
		m = &mailbox{hash: e.mailbox, due: min(e.noted, s.with.Now())} // a clock may step back
		s.mailboxes[e.mailbox] = m
		defer heap.Push(&s.due, m)
	}
	m.events = append(m.events, e)
}

// endFirst ends the first event of a mailbox, and has the next one posted.
func (s *sender) endFirst(m *mailbox, result string) {
	s.events.counts.WithLabelValues(result).Inc()
	s.waiting.Dec()
	if err := s.journal.remove(m.events[0]); err != nil {
		s.warn("the journal of events cannot be written: some will be posted again", err)
	}
	if m.events, m.tries = m.events[1:], 0; len(m.events) == 0 {
		delete(s.mailboxes, m.hash)
		return
	}
	m.due = min(m.events[0].noted, s.with.Now())
	heap.Push(&s.due, m)
}

// finish cuts off the posts in progress and keeps what was noted.
func (s *sender) finish() {
	for s.posting > 0 {
		if r := <-s.results; r.err == nil {
			s.posted(r)
		} else {
			s.posting--
		}
	}
	for len(s.events.notes) > 0 {
		s.record(<-s.events.notes)
	}
	s.client.CloseIdleConnections()
	s.events.err = s.journal.store.Close()
}

// dueHeap has the mailbox that is due first at its top.
type dueHeap []*mailbox

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(m any)        { *h = append(*h, m.(*mailbox)) }
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
