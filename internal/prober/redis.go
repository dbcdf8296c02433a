package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/redis/go-redis/v9"
)

// Current returns the masters that have keys now.
func (p *Prober) Current(ctx context.Context) (all []*Master) {
	if cluster, ok := p.client.(*redis.ClusterClient); ok {
		clients, _ := redisx.Masters(ctx, cluster) // of a Cluster that is not known yet, none
		for _, client := range clients {
			all = append(all, p.at(client.Options().Addr))
		}
	}
	if len(all) == 0 {
		all = append(all, p.at(""))
	}
	return all
}

// TryAll has every master take a write of the program's own client.
func (p *Prober) TryAll(ctx context.Context) (err error) {
	for _, master := range p.Current(ctx) {
		err = errors.Join(err, master.Try(ctx))
	}
	return err
}

// tryWrite is what a try and a probe do: a script, as sends are, since a master may take other commands alone. By the
// program's own client it is confirmed by replicas, too.
var tryWrite = redisx.NewScript("return redis.call('SET', KEYS[1], '1', 'PX', 1000)", func(any) bool { return true })

// Try has the master take a write of the program's own client.
func (m *Master) Try(ctx context.Context) error {
	if err := m.write(ctx, m.prober.client); err != nil {
		return fmt.Errorf("trying a write on Redis: %w", err)
	}
	return nil
}

// write has the master take a write of a client. One without keys was replaced, and another one answers for them.
func (m *Master) write(ctx context.Context, client redis.UniversalClient) error {
	key, found := m.prober.keyOn(m.Address)
	if !found {
		return nil
	}
	_, err := tryWrite.Run(ctx, client, key)
	return err
}

// keyOn returns a key on the master to try a write with, and reports whether there is one. Any
// master with slots has one of the first thousand.
func (p *Prober) keyOn(address string) (key string, found bool) {
	for i := range 1000 {
		key = p.prefix + ":standby:" + strconv.Itoa(i)
		if address == "" || redisx.AddressOf(p.client, key) == address {
			return key, true
		}
	}
	return key, false
}

// newClient returns a client for probes of the master, without the hooks of the program's.
func (m *Master) newClient() redis.UniversalClient {
	m.mu.Lock()
	server, timeout := m.options, m.prober.timeout
	m.mu.Unlock()
	to := func(server *redis.Options) *redis.Client {
		o := *server
		// With one connection it would go on to dial after the first failure.
		o.PoolSize, o.MinIdleConns, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = 4, 0, -1, 1, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = timeout, timeout, timeout
		o.PushNotificationProcessor = nil // belongs to one client
		return redis.NewClient(&o)
	}
	if server != nil {
		return to(server)
	}
	all := *m.prober.client.(*redis.ClusterClient).Options()
	all.NewClient = to
	return redis.NewClusterClient(&all)
}

// tryProbe has the master take a write of the prober's client.
func (m *Master) tryProbe(ctx context.Context, client redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(ctx, m.prober.timeout)
	defer cancel()
	err := m.write(ctx, client)
	if outcomeOf(err) == refused { // perhaps only the connection was broken
		err = m.write(ctx, client)
	}
	if cluster, ok := m.prober.client.(*redis.ClusterClient); ok && err != nil {
		cluster.ReloadState(ctx) // another may be the master by now
	}
	return err
}

// refusals are the first words of the replies by which a master says that it takes no writes.
var refusals = []string{"OOM", "READONLY", "NOAUTH", "WRONGPASS", "NOPERM", "LOADING", "BUSY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN"}

// outcomeOf returns what the error of a call says of the master.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return answered
	case redisx.IsReply(err):
		if slices.ContainsFunc(refusals, func(word string) bool { return redis.HasErrorPrefix(err, word) }) {
			return refused
		}
		return answered
	case isAny(err, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL, redis.ErrPoolTimeout):
		return inconclusive
	case strings.Contains(err.Error(), "all sentinels specified in configuration are unreachable"): // which says nothing of it
		return silent
	case isAny(err, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED):
		return refused // or the connection ended
	}
	return silent
}

func isAny(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}
