// Package redisx opens a Redis that several nodes share: standalone, behind Sentinel or as a
// Cluster. The client is a plain redis.UniversalClient:
//
//   - Every call ends within Options.Timeout, whatever Redis does.
//   - With a prober.Prober, calls to a master that is away fail at once, with [ErrAway].
//   - Only masters are asked.
//   - With Options.Confirm, what a [Script] wrote is answered when replicas have it too.
//
// A Script is never sent twice. Errors name no key and no argument.
package redisx

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	poolSize = 64 // connections to each master, besides those that wait for replicas
	idleSize = 32 // of them are kept
)

// Options say where Redis is and how certain a write must be. URL and Timeout are required.
type Options struct {
	// URL names the servers, in the forms of go-redis's ParseURL, ParseClusterURL and ParseFailoverURL:
	//
	//	redis://user:password@host:6379/0
	//	redis+cluster://user:password@host1:6379?addr=host2:6379
	//	redis+sentinel://host1:26379/0?master_name=name&username=user&password=password&addr=host2:26379
	//
	// User and password before the @ of the last are those of the Sentinels. With rediss in front the connections
	// are TLS; ?ca= names a PEM file with the authorities to trust instead of the system's. Other settings of
	// go-redis are refused.
	URL string
	// Timeout is the longest that a call takes.
	Timeout time.Duration
	// Confirm is how many replicas must have what a Script wrote before it is answered.
	Confirm int
	// Format is the version of the form of all records under Prefix. If Redis has records of another
	// version, every call is ErrFormat. 0 is not checked.
	Format int
	Prefix string
}

// Open returns a client. It does not wait for Redis.
func Open(o Options) (redis.UniversalClient, error) {
	settings, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("opening Redis: %w", err)
	}
	o.apply(settings)
	var client redis.UniversalClient
	switch {
	case settings.IsClusterMode:
		cluster := settings.Cluster()
		cluster.DisableRoutingPolicies = true // else the first calls would ask any server what commands there are
		cluster.NewClient = func(node *redis.Options) *redis.Client {
			client := redis.NewClient(node)
			client.AddHook(newMaster(client, o.Confirm))
			return client
		}
		client = redis.NewClusterClient(cluster)
	case settings.MasterName != "":
		client = redis.NewFailoverClient(settings.Failover())
	default:
		client = redis.NewClient(settings.Simple())
	}
	client.AddHook(Around((&deadline{o.Timeout, newFormat(client, o)}).within))
	if server, ok := client.(*redis.Client); ok {
		client.AddHook(newMaster(server, o.Confirm))
	}
	return client, nil
}

// apply adds to the settings of a URL those that bound a call.
func (o Options) apply(s *redis.UniversalOptions) {
	dial := net.Dialer{Timeout: o.Timeout, KeepAlive: 30 * time.Second}
	s.Dialer = dial.DialContext
	if s.TLSConfig != nil {
		// tls.Dialer keeps to the context, also during the handshake.
		s.Dialer = (&tls.Dialer{NetDialer: &dial, Config: s.TLSConfig}).DialContext
	}
	s.DialTimeout, s.ReadTimeout, s.WriteTimeout, s.PoolTimeout = o.Timeout, o.Timeout, o.Timeout, o.Timeout
	s.ContextTimeoutEnabled = true
	s.MaxRetries, s.DialerRetries = -1, 1
	s.PoolSize, s.MaxIdleConns = poolSize, idleSize
	if o.Confirm > 0 {
		s.PoolSize += maxConfirming
	}
	s.DisableIdentity = true
	s.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// Masters returns a client of each master.
func Masters(ctx context.Context, client redis.UniversalClient) (masters []*redis.Client, err error) {
	switch client := client.(type) {
	case *redis.Client:
		return []*redis.Client{client}, nil
	case *redis.ClusterClient:
		var mu sync.Mutex
		err = client.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			masters = append(masters, master)
			return nil
		})
		return masters, err
	}
	return nil, fmt.Errorf("a client of type %T has no masters", client)
}

// AddressOf returns that of a key's master in a Cluster, empty for another client and while its masters are not known. It
// does not wait for the network.
func AddressOf(client redis.UniversalClient, key string) string {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		if master, err := cluster.MasterForKey(ended, key); err == nil {
			return master.Options().Addr
		}
	}
	return ""
}

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

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
