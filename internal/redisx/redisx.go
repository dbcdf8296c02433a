// Package redisx opens Redis for several nodes that decide by what is in it: standalone,
// behind Sentinel or as a Cluster. What comes out is a plain redis.UniversalClient:
//
//   - Every call ends within Options.Timeout, whatever Redis does.
//   - A master that has not answered three calls in a row has an open circuit: calls fail at
//     once with [ErrResting], and one call every half second tries whether it answers again.
//   - Only masters are asked.
//   - With Options.Confirm, what a [Script] wrote is answered when replicas have it too.
//
// A Script is never sent twice. Errors name no key and no argument.
package redisx

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// DefaultTimeout is how long a call may take when Options.Timeout is zero.
const DefaultTimeout = 250 * time.Millisecond

const (
	poolSize = 64 // connections to each master, besides those that wait for replicas
	idleSize = 32 // of them are kept
)

// Options say where Redis is and how certain a write must be.
type Options struct {
	// URL names the servers:
	//
	//	redis://user:password@host:6379/0
	//	redis+sentinel://user:password@host1:26379,host2:26379/master-name/0
	//	redis+cluster://user:password@host1:6379,host2:6379
	//
	// With rediss in front the connections are TLS; ?ca= names a PEM file with the
	// authorities to trust instead of the system's. Sentinels with a password of their
	// own take ?sentinel_user= and ?sentinel_password=.
	URL string
	// Timeout is the longest that a call takes; the default is DefaultTimeout.
	Timeout time.Duration
	// Confirm is how many replicas must have what a Script wrote before it is answered.
	Confirm int
	// Log receives a line when the circuit of a master opens or closes. It may be nil.
	Log *slog.Logger
}

// Open returns a client. It does not wait for Redis.
func Open(o Options) (redis.UniversalClient, error) {
	if o.Confirm < 0 || o.Timeout < 0 {
		return nil, errors.New("opening Redis: Confirm and Timeout must not be negative")
	}
	servers, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("opening Redis: %w", err)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	settings := servers.settings(o)
	switch servers.kind {
	case clustered:
		cluster := settings.Cluster()
		// Else the first calls would ask any server what commands there are.
		cluster.DisableRoutingPolicies = true
		cluster.NewClient = func(node *redis.Options) *redis.Client {
			client := redis.NewClient(node)
			client.AddHook(newMaster(client, o))
			return client
		}
		client := redis.NewClusterClient(cluster)
		client.AddHook(deadline{o.Timeout, client.ReloadState})
		return client, nil
	case sentinel:
		return withHooks(redis.NewFailoverClient(settings.Failover()), o), nil
	}
	return withHooks(redis.NewClient(settings.Simple()), o), nil
}

func withHooks(client *redis.Client, o Options) redis.UniversalClient {
	client.AddHook(deadline{o.Timeout, func(context.Context) {}})
	client.AddHook(newMaster(client, o))
	return client
}

func (s servers) settings(o Options) *redis.UniversalOptions {
	dial := net.Dialer{Timeout: o.Timeout, KeepAlive: 30 * time.Second}
	settings := &redis.UniversalOptions{
		Addrs:      s.addresses,
		MasterName: s.master,
		Username:   s.user, Password: s.password,
		SentinelUsername: s.sentinelUser, SentinelPassword: s.sentinelPassword,
		DB: s.database,

		Dialer:      dial.DialContext,
		DialTimeout: o.Timeout, ReadTimeout: o.Timeout, WriteTimeout: o.Timeout, PoolTimeout: o.Timeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DialerRetries:         1,
		DisableIdentity:       true,
		PoolSize:              poolSize,
		MaxIdleConns:          idleSize,

		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.Confirm > 0 {
		settings.PoolSize += maxConfirming
	}
	if s.tls {
		// tls.Dialer keeps to the context, also during the handshake.
		settings.Dialer = (&tls.Dialer{NetDialer: &dial, Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.roots}}).DialContext
	}
	return settings
}

// Masters returns a client of each master.
func Masters(ctx context.Context, client redis.UniversalClient) (masters []*redis.Client, err error) {
	switch client := client.(type) {
	case *redis.Client:
		return []*redis.Client{client}, nil
	case *redis.ClusterClient:
		found := make(chan *redis.Client)
		go func() {
			defer close(found)
			err = client.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
				found <- master
				return nil
			})
		}()
		for master := range found {
			masters = append(masters, master)
		}
		return masters, err
	}
	return nil, fmt.Errorf("a client of type %T has no masters", client)
}

// LogTo sends what the Redis library reports, such as connections that broke, to a log at the
// debug level. The library has one logger for the whole process: a program calls this once,
// before Open.
func LogTo(log *slog.Logger) { redis.SetLogger(libraryLog{log}) }

type libraryLog struct{ to *slog.Logger }

func (l libraryLog) Printf(ctx context.Context, format string, values ...any) {
	if l.to.Enabled(ctx, slog.LevelDebug) {
		l.to.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, values...))
	}
}
