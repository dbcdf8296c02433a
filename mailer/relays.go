package mailer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Relays hands mails to the first of several relays that takes them. It may
// be used from any number of goroutines.
type Relays struct {
	relays   []*relay
	pace     *pacer // nil: no pace
	deadline time.Duration
	paced    func(time.Duration)
	life     context.Context // ends when whoever is inside must leave
	end      context.CancelFunc

	mu      sync.Mutex
	inside  int
	closing bool
	empty   chan struct{} // closed once closing and nobody is inside
	closed  chan struct{} // closed when Close has done its work
}

// NewRelays makes the connections' keeper; nothing is dialed before the first
// mail. The relays are tried in the order given. The caller closes it.
func NewRelays(urls []RelayURL, options Options) (*Relays, error) {
	if len(urls) == 0 {
		return nil, errors.New("relay settings: no relay is given")
	}
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Relays{
		deadline: o.Deadline,
		paced:    o.Hooks.Paced,
		empty:    make(chan struct{}),
		closed:   make(chan struct{}),
	}
	r.life, r.end = context.WithCancel(context.Background())
	for _, url := range urls {
		if url.mode == 0 {
			return nil, errors.New("relay settings: a relay URL is empty")
		}
		r.relays = append(r.relays, newRelay(r.life, url, o))
	}
	if o.Pace.PerSecond > 0 {
		r.pace = newPacer(o.Pace, o.Now, r.life.Done())
	}
	return r, nil
}

// Receipt is a relay's word that it has taken a mail over.
type Receipt struct {
	Relay string // host:port
	OAuth bool   // it was told a token, and no password
	Reply Reply  // its answer to the final dot; the text often names the queue entry
}

// Send hands a mail to the first relay that takes it and returns when a relay
// has accepted it (its 250 to the final dot). Otherwise the error
//
//   - is a *SendError, whose Outcome says whether the mail may have left;
//   - matches ErrBusy: too many sends are waiting, or too little time was left
//     when its turn came, or would be (a second, or a tenth of what the mail
//     came with where that is less); the mail never left;
//   - matches ErrUnsendable: the message is not fit for the wire.
//
// Another relay is tried only while it is certain that the mail never left, and
// where the line for a connection is long, after a third of the time. When none
// of the others takes it, it comes back to that line.
// Send blocks until ctx ends or Options.Deadline has passed, at most.
func (r *Relays) Send(ctx context.Context, m Message) (Receipt, error) {
	l, err := prepare(&m)
	if err != nil {
		return Receipt{}, err
	}
	defer l.free()
	if !r.enter() {
		return Receipt{}, &SendError{Outcome: Unavailable, Err: ErrClosed}
	}
	defer r.leave()
	p := newPatience(ctx, time.Now(), r.deadline)
	if failure := r.allResting(); failure != nil {
		return Receipt{}, failure
	}
	if err := r.await(p, l.caller); err != nil {
		return Receipt{}, err
	}
	return r.inTurn(p, l)
}

// await is the mail's turn in the pace.
func (r *Relays) await(p patience, caller string) error {
	if r.pace == nil {
		return nil
	}
	began := time.Now()
	err := r.pace.wait(p.ctx, caller, p.lastCall())
	if err == nil {
		r.paced(time.Since(began))
	}
	return err
}

// allResting is the failure of a mail that no relay would be asked about, or
// nil: there is no sense in making it wait for its turn.
func (r *Relays) allResting() *SendError {
	var soonest int64
	for _, relay := range r.relays {
		rest := relay.circuit.Rest()
		if rest == 0 {
			return nil
		}
		if soonest == 0 || rest < soonest {
			soonest = rest
		}
	}
	return &SendError{
		Outcome:    Unavailable,
		RetryAfter: time.Duration(soonest) * time.Millisecond,
		Err:        errResting,
	}
}

// inTurn asks one relay after the other, and in the end again those whose line was
// left for the others. When none takes the mail, the answer is that of the last one
// that was asked and said something: a relay left alone only adds when to come again.
func (r *Relays) inTurn(p patience, l *letter) (Receipt, error) {
	var last error
	asked, deferred := false, true // of those that were asked, by all
	round := slices.Clip(r.relays)
	for i := 0; i < len(round); i++ {
		relay, own := round[i], r.inLine(p, i)
		reply, err := relay.send(own, l)
		if err == nil {
			return Receipt{Relay: relay.name, OAuth: relay.opener.tokens != nil, Reply: *reply}, nil
		}
		failure, ok := errors.AsType[*SendError](err)
		if ok && (failure.Outcome != Unavailable || errors.Is(err, errHeldBack)) {
			return Receipt{}, err
		}
		if ok && !errors.Is(err, errResting) { // if not ok it was busy
			asked, deferred = true, deferred && failure.Deferred
		}
		if last == nil || !errors.Is(err, errResting) {
			last = err
		}
		if p.tooLate() {
			break
		}
		if own.leftLine(err) { // the others may be dead, and this one merely slow
			round = append(round, relay)
		}
	}
	if failure, ok := errors.AsType[*SendError](last); ok {
		failure.Deferred = asked && deferred
	}
	return Receipt{}, last
}

// inLine is the patience of a mail that comes to a relay. With another to ask after
// it, a mail stands in its line for a third of what is left, and no longer. After
// one that is asked again there is none.
func (r *Relays) inLine(p patience, i int) patience {
	for _, next := range r.relays[min(i+1, len(r.relays)):] {
		if next.circuit.Rest() == 0 {
			p.line = time.Now().Add(time.Until(p.lastCall()) / 3)
			break
		}
	}
	return p
}

func (r *Relays) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	r.inside++
	return true
}

func (r *Relays) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside--
	if r.closing && r.inside == 0 {
		close(r.empty)
	}
}

// Close turns new mails away, waits for those under way and takes leave of
// the relays. When ctx ends first, what is under way is cut off (a mail whose
// final dot has gone out is then Unknown to its sender) and the error is the
// context's. Either way no connection and no goroutine is left.
func (r *Relays) Close(ctx context.Context) error {
	if !r.shut() {
		<-r.closed
		return nil
	}
	defer close(r.closed)
	defer r.end()
	var err error
	select {
	case <-r.empty:
	case <-ctx.Done():
		err = ctx.Err()
		r.cut()
		<-r.empty
	}
	for _, relay := range r.relays {
		relay.conns.close()
	}
	for _, relay := range r.relays {
		relay.leaving.Wait()
	}
	if r.pace != nil {
		r.pace.stop()
	}
	return err
}

// shut turns new mails away. It says false if that was done before.
func (r *Relays) shut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return false
	}
	r.closing = true
	if r.inside == 0 {
		close(r.empty)
	}
	return true
}

func (r *Relays) cut() {
	r.end()
	for _, relay := range r.relays {
		relay.cut()
	}
}

// RelayStats are one relay's figures at this moment.
type RelayStats struct {
	Relay   string
	Open    int  // connections, those being made included
	Idle    int  // of them
	Waiting int  // sends waiting for one
	Resting bool // it was left alone as it failed, and has not answered since
}

// Stats are the figures of every relay, in order.
func (r *Relays) Stats() []RelayStats {
	stats := make([]RelayStats, len(r.relays))
	for i, relay := range r.relays {
		open, idle, waiting := relay.conns.counts()
		stats[i] = RelayStats{
			Relay: relay.name, Open: open, Idle: idle, Waiting: waiting,
			Resting: relay.circuit.Open(),
		}
	}
	return stats
}
