// Package relay hands emails to SMTP relays and says exactly what became of them.
//
// An email is a transaction. Begin finds a relay and goes up to its 354; until then the email
// has certainly not left. Commit sends the text and says whether it was accepted, refused
// for good, certainly not sent, or possibly delivered without an answer. The caller notes
// between the two that the email may leave.
//
//	tx, err := relays.Begin(ctx, relay.Envelope{From: from, To: recipients})
//	if err != nil {
//		return err // the email never left, or was refused for good
//	}
//	defer tx.Abort() // does nothing after Commit
//	if err := note(ctx); err != nil {
//		return err
//	}
//	receipt, err := tx.Commit(text)
package relay

import (
	"context"
	"errors"
	"sync"
)

// Relays hands emails to the first of several relays that takes them. It may be used from
// any number of goroutines.
type Relays struct {
	relays  []*relay
	pacer   *pacer // nil: no pace
	options Options
	life    context.Context // ends when everything must
	end     context.CancelFunc

	mu      sync.Mutex
	closing bool
	sending sync.WaitGroup  // transactions in progress
	open    context.Context // ends when no new emails are taken
	shut    context.CancelFunc
	probes  sync.WaitGroup
	close   sync.Once
}

// New prepares the relays, which are tried in this order. The first email dials. The caller
// closes them.
func New(urls []URL, options Options) (*Relays, error) {
	if len(urls) == 0 {
		return nil, errors.New("relay settings: no relay is given")
	}
	o := options.withDefaults()
	r := &Relays{options: o}
	r.life, r.end = context.WithCancel(context.Background())
	r.open, r.shut = context.WithCancel(r.life)
	for _, url := range urls {
		if url.hidden != nil {
			return nil, url.hidden
		}
		r.relays = append(r.relays, newRelay(url, o))
	}
	if o.Pace.PerSecond > 0 {
		r.pacer = newPacer(o.Pace)
	}
	return r, nil
}

func (r *Relays) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closing {
		r.sending.Add(1)
	}
	return !r.closing
}

// Close refuses new emails, waits for those in progress and ends the connections. If ctx ends
// first, what is in progress is cut off (an email whose final dot has gone out is then Unknown)
// and the error is the context's. Either way no connection and no goroutine is left.
func (r *Relays) Close(ctx context.Context) (err error) {
	r.close.Do(func() {
		r.mu.Lock()
		r.closing = true
		r.mu.Unlock()
		r.shut()
		defer context.AfterFunc(ctx, r.end)()
		r.sending.Wait()
		r.probes.Wait()
		err = ctx.Err()
		for _, relay := range r.relays {
			relay.pool.close()
		}
		r.end()
	})
	return err
}

// Stats are one relay's figures at this moment.
type Stats struct {
	Relay       string
	Open        int  // connections, including those being made
	Idle        int  // of them
	Waiting     int  // sends waiting for one
	CircuitOpen bool // its circuit breaker is open
}

// Stats returns the figures of every relay, in order.
func (r *Relays) Stats() []Stats {
	stats := make([]Stats, len(r.relays))
	for i, relay := range r.relays {
		open, idle, waiting := relay.pool.counts()
		stats[i] = Stats{Relay: relay.name, Open: open, Idle: idle, Waiting: waiting, CircuitOpen: relay.circuit.Open()}
	}
	return stats
}
