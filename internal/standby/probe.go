package standby

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/redis/go-redis/v9"
)

// probeKey returns a key on the master to try a write with, and reports whether there is one.
func (s *Standby) probeKey(address string) (key string, found bool) {
	const enough = 1000
	for i := range enough {
		key = s.o.Prefix + ":standby:" + strconv.Itoa(i)
		if address == "" || s.addressOf(key) == address {
			return key, true
		}
	}
	return key, false
}

// suspect has the master probed, as a call has failed. The channel is closed when the probe
// has ended.
func (s *Standby) suspect(m *master) (probed <-chan struct{}) {
	s.look(m, true)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prober == nil {
		client := s.probeClient(m.address)
		p := prober.New(s.lateness, func(ctx context.Context) prober.Outcome { return s.probe(ctx, client, m.address) })
		s.background.Go(func() {
			stop := context.AfterFunc(s.work, func() { _ = client.Close() }) // ends a probe under way
			p.Run(s.work)
			if stop() {
				_ = client.Close()
			}
			s.rouse()
		})
		m.prober = p
	}
	return m.prober.Suspect()
}

// probeClient returns a client of its own for a master, with one connection and without the
// hooks of the program's.
func (s *Standby) probeClient(address string) redis.UniversalClient {
	switch client := s.o.Client.(type) {
	case *redis.ClusterClient:
		if key, _ := s.probeKey(address); address != "" {
			if node, err := client.MasterForKey(ended, key); err == nil {
				return s.alike(node)
			}
		}
		o := *client.Options()
		o.PoolSize, o.MinIdleConns, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = 1, 0, -1, 1, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = s.o.Timeout, s.o.Timeout, s.o.Timeout
		return redis.NewClusterClient(&o)
	case *redis.Client:
		return s.alike(client)
	default:
		panic("standby: the client is neither a redis.Client nor a redis.ClusterClient")
	}
}

func (s *Standby) alike(client *redis.Client) *redis.Client {
	o := *client.Options()
	o.PoolSize, o.MinIdleConns, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = 1, 0, -1, 1, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = s.o.Timeout, s.o.Timeout, s.o.Timeout
	o.PushNotificationProcessor = nil // is of one client
	return redis.NewClient(&o)
}

// probe has a master take a write.
func (s *Standby) probe(ctx context.Context, client redis.UniversalClient, address string) prober.Outcome {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	key, found := s.probeKey(address)
	if !found {
		return prober.Answered // another master has its keys
	}
	err := client.Set(ctx, key, 1, time.Second).Err()
	if err != nil && !timedOut(err) { // perhaps the connection alone
		err = client.Set(ctx, key, 1, time.Second).Err()
	}
	if cluster, ok := s.o.Client.(*redis.ClusterClient); ok && err != nil {
		cluster.ReloadState(ctx) // another may have taken its place
	}
	return outcomeOf(err)
}

// refusals are the first words of the replies by which a master says that it takes no writes.
var refusals = []string{"OOM", "READONLY", "NOAUTH", "WRONGPASS", "NOPERM", "LOADING", "BUSY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN"}

func outcomeOf(err error) prober.Outcome {
	var reply redis.Error
	switch {
	case err == nil || errors.As(err, &reply) && !refuses(reply):
		return prober.Answered
	case reply != nil || broken(err):
		return prober.Refused
	case ofThisProcess(err):
		return prober.Inconclusive
	}
	return prober.Silent
}

func refuses(reply redis.Error) bool {
	for _, word := range refusals {
		if redis.HasErrorPrefix(reply, word) {
			return true
		}
	}
	return false
}

// broken reports whether a connection was refused or ended. Sentinels that refuse say nothing of
// the master.
func broken(err error) bool {
	return !strings.Contains(err.Error(), "all sentinels specified in configuration are unreachable") &&
		is(err, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED)
}

// ofThisProcess reports whether a connection could not be made for want of something here.
func ofThisProcess(err error) bool {
	return is(err, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL, redis.ErrPoolTimeout)
}

func is(err error, any ...error) bool {
	return slices.ContainsFunc(any, func(e error) bool { return errors.Is(err, e) })
}

// timedOut reports whether a call ended because no reply came in time, to it or to those before.
func timedOut(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout() ||
		is(err, context.DeadlineExceeded, redis.ErrPoolTimeout, redisx.ErrSilent, redisx.ErrResting)
}

// undone reports whether Redis certainly was not asked: no connection was made, or none was needed.
func undone(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial" || is(err, errNotAsked, redisx.ErrResting)
}
