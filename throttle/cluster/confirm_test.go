package cluster_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
)

func TestConfirmedByAReplica(t *testing.T) {
	master := redistest.Alone(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	limiter := open(t, redisstore.Options{URL: master.URL(), Confirm: 1, Timeout: 500 * time.Millisecond})
	ctx := context.Background()
	if warnings, err := openStore(t, redisstore.Options{URL: master.URL(), Confirm: 2, Timeout: patient}).Prepare(ctx); err != nil || !strings.Contains(strings.Join(warnings, "\n"), "2 must confirm") {
		t.Errorf("two confirmations from one replica: %q, %v", warnings, err)
	}

	mailbox := mailboxOf("confirmed")
	id := admit(t, limiter, mailbox) // waits for the first synchronisation, by insisting
	if n := replica.Client().ZCard(ctx, "mailgate:{}"+mailbox).Val(); n != 1 {
		t.Errorf("a confirmed admission is not at the replica")
	}

	replica.Pause()
	unconfirmed, lost := mailboxOf("unconfirmed"), throttle.NewID()
	for what, take := range map[string]func() (throttle.Verdict, error){
		"new":          func() (throttle.Verdict, error) { return limiter.Take(ctx, unconfirmed, lost) },
		"repeated":     func() (throttle.Verdict, error) { return limiter.Take(ctx, mailbox, id) },
		"not repeated": func() (throttle.Verdict, error) { return limiter.Take(ctx, mailboxOf("third"), throttle.NewID()) },
	} {
		if v, err := take(); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
			t.Errorf("%s admission without a replica: allowed %v, %v", what, v.Allowed, err)
		}
	}
	if v := take(t, limiter, mailbox, throttle.NewID()); v.Allowed {
		t.Error("without a replica a second send is admitted")
	}
	replica.Resume()
	if v := take(t, limiter, unconfirmed, lost); !v.Allowed {
		t.Error("taken again with the same id once the replica is back: not admitted")
	}
	// Some servers' WAIT is for what all have written, so that it does not tell.
	key := "mailgate:{}" + mailbox
	master.Client().Persist(ctx, key)
	if v := take(t, limiter, mailbox, id); !v.Allowed || master.Client().PTTL(ctx, key).Val() < 0 {
		t.Errorf("repeated: allowed %v, or nothing was written", v.Allowed)
	}
}

func TestConfirmedInACluster(t *testing.T) {
	servers := redistest.Cluster(t)
	limiter := open(t, redisstore.Options{URL: servers.URL(), Confirm: 1, Timeout: 2 * time.Second})
	for range 30 {
		admit(t, limiter, mailboxOf("cluster"))
	}
	mailbox := mailboxOf("alone")
	master := servers.MasterOf("mailgate:{}" + mailbox)
	elsewhere := open(t, redisstore.Options{URL: servers.AnotherMaster(master).URL(), Confirm: 1, Timeout: patient})
	if _, err := elsewhere.Take(context.Background(), mailbox, throttle.NewID()); !errors.Is(err, throttle.ErrUnchanged) {
		t.Errorf("sent on to where it cannot follow: %v is no proof", err)
	}
	replica := servers.ReplicaOf(master)
	replica.Pause()
	if v, err := limiter.Take(context.Background(), mailbox, throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || v.Allowed {
		t.Errorf("an admission without its replica: allowed %v, %v", v.Allowed, err)
	}
	replica.Resume()
}
