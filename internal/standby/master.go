package standby

import (
	"context"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/prober"
	"github.com/redis/go-redis/v9"
)

// state is where a master stands.
//
//	             lost     back         drained
//	connected    away     connected    connected
//	away         away     returning    away
//	returning    away     returning    connected
type state int

const (
	connected state = iota // Redis decides
	away                   // the node decides alone
	returning              // Redis decides about each key once it was told of it
)

// event is what moves a master from one state to the next.
type event int

const (
	lost    event = iota // the prober says that the master is away
	back                 // the prober says that it answers
	drained              // its journal is empty
)

func (s state) next(e event) state {
	switch {
	case e == lost:
		return away
	case e == back && s == away:
		return returning
	case e == drained && s == returning:
		return connected
	}
	return s
}

// master is the switch of one Redis master, or of all where their addresses are not known.
type master struct {
	address string

	mu     sync.Mutex
	state  state
	prober *prober.Prober // nil while no call has failed since it last answered
	began  time.Time      // of the outage
	since  int64          // the same by Redis's clock
	before State          // the counts then
	cause  error          // of the last call that failed
}

// look returns the state of a master as the prober has it now. Asking keeps the prober at work.
func (s *Standby) look(m *master, asking bool) state {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prober == nil {
		return m.state
	}
	if asking {
		m.prober.Ask()
	}
	switch m.prober.State() {
	case prober.Away:
		s.apply(m, lost)
	case prober.Here:
		s.apply(m, back)
		m.prober = nil
	}
	return m.state
}

// failed notes why a call has failed, for the log.
func (m *master) failed(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cause = cause
}

// heard notes that the master has answered a call.
func (m *master) heard() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prober != nil {
		m.prober.Heard()
	}
}

// apply moves a master to its next state, with mu held, and logs where an outage begins and ends.
func (s *Standby) apply(m *master, e event) {
	from := m.state
	m.state = from.next(e)
	switch {
	case from == m.state:
		return
	case from == connected:
		s.begin(m)
		s.o.Log.Warn("Redis is away: this node decides by its own records", "master", m.address, "cause", m.cause)
	case m.state == connected:
		now := s.counts()
		s.o.Log.Info("Redis is back and has been told what it missed", "master", m.address,
			"lasted", time.Since(m.began).Round(time.Millisecond).String(),
			"admitted_alone", now.Admitted-m.before.Admitted, "told", now.Told-m.before.Told)
	}
	s.rouse()
}

// begin notes when an outage began.
func (s *Standby) begin(m *master) {
	m.began, m.since, m.before = time.Now(), s.o.Clock.Now(), s.counts()
}

// ended is a context for questions that must not wait for the network.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// masterOf returns the master of a key's records, which are under {key} as their hash tag.
func (s *Standby) masterOf(key string) *master { return s.master(s.addressOf("{" + key + "}")) }

// addressOf is empty where there is one master, or where the masters are not known yet.
func (s *Standby) addressOf(redisKey string) string {
	if cluster, ok := s.o.Client.(*redis.ClusterClient); ok {
		if node, err := cluster.MasterForKey(ended, redisKey); err == nil {
			return node.Options().Addr
		}
	}
	return ""
}

func (s *Standby) master(address string) *master {
	if m, ok := s.masters.Load(address); ok {
		return m.(*master)
	}
	m, _ := s.masters.LoadOrStore(address, &master{address: address})
	return m.(*master)
}

// allMasters are those that were asked for so far.
func (s *Standby) allMasters() (all []*master) {
	s.masters.Range(func(_, m any) bool { all = append(all, m.(*master)); return true })
	return all
}
