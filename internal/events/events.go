// Package events tells a service of the operator what becomes of each email: calls with the signatures of
// Standard Webhooks, at least once, those about one mailbox in their order.
//
// [Events.Note] only hands an event over to a goroutine, which appends it to a journal on disk and posts
// from there. Where that is too slow, or the journal is full, events are dropped and counted, and no email
// waits.
package events

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/internal/webhook"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/mailer/address"
)

// MaxBytes bounds the journal: 130,000 events of 500 bytes.
const MaxBytes = 64 << 20

// handOver is how many events may wait for the journal.
const handOver = 4096

// Options are what Open needs, all of them.
type Options struct {
	URL      string
	Secrets  webhook.Secrets
	Dir      string // of the journal
	MaxBytes int64  // of the journal
	Now      func() int64
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Events posts events. A nil Events ignores them.
type Events struct {
	notes  chan note
	counts *prometheus.CounterVec
	end    context.CancelFunc
	ended  chan struct{}
	err    error // of closing the journal
}

// note is an event on its way to the journal.
type note struct {
	mailbox  string
	frequent bool
	at       int64
	line     []byte
}

// Open opens the journal and posts what waits in it.
func Open(o Options) (*Events, error) {
	journal, waiting, err := openJournal(o)
	if err != nil {
		return nil, fmt.Errorf("opening the journal of events: %w", err)
	}
	e := &Events{notes: make(chan note, handOver), ended: make(chan struct{}), counts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mailgate_events_total", Help: "Events by what came of them: delivered, a try that failed, or why they were dropped."}, []string{"result"})}
	for _, result := range []string{delivered, failed, droppedBusy, droppedFull, droppedLate, droppedDisk} {
		e.counts.WithLabelValues(result)
	}
	s := newSender(o, journal, e)
	for _, collector := range []prometheus.Collector{e.counts, s.waiting} {
		if err := o.Metrics.Register(collector); err != nil {
			return nil, fmt.Errorf("preparing the metrics of events: %w", err)
		}
	}
	var life context.Context
	life, e.end = context.WithCancel(context.Background())
	for _, one := range waiting {
		s.queue(one)
	}
	go s.run(life)
	return e, nil
}

// Close writes to the journal what was noted before, and ends. What waits is posted after the next Open.
func (e *Events) Close() error {
	if e == nil {
		return nil
	}
	e.end()
	<-e.ended
	return e.err
}

// The results, in metrics.
const (
	delivered   = "delivered"
	failed      = "failed"
	droppedBusy = "dropped-busy" // the journal is not written fast enough
	droppedFull = "dropped-full"
	droppedLate = "dropped-late" // after a day
	droppedDisk = "dropped-disk"
)

// Note notes an event about a mailbox. Its data has these members of an object, with a comma before each. It never
// waits.
func (e *Events) Note(at int64, kind string, to address.Address, members []byte) {
	if e == nil {
		return
	}
	var data, body wire.Object
	data.String("email", to.String())
	data = append(data, members...)
	body.String("type", kind)
	body.Time("timestamp", at)
	body.Raw("data", data.End())
	n := note{mailbox: to.Hash(), frequent: kind == "email.refused", at: at}
	n.line = fmt.Appendf(nil, "evt_%s %d %s %s\n", rand.Text(), at, n.mailbox, body.End())
	select {
	case e.notes <- n:
	default:
		e.counts.WithLabelValues(droppedBusy).Inc()
	}
}

// event is one in the journal.
type event struct {
	mailbox string // its hash
	noted   int64
	key     string // of its line
	size    int64
}

// parseLine reads the line of an event: what is kept in memory but for its key, and what is posted.
func parseLine(line []byte) (e event, id string, body []byte, err error) {
	parts := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(" "), 4)
	if len(parts) < 4 {
		return e, "", nil, errLine
	}
	e.mailbox, e.size = string(parts[2]), int64(len(line))
	e.noted, err = strconv.ParseInt(string(parts[1]), 10, 64)
	return e, string(parts[0]), parts[3], err
}
