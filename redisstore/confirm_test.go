package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore/redistest"
)

// deciding says no, and writes nothing, or yes, and counts it.
var deciding = NewScript(`if ARGV[1] == 'no' then return 'no' end redis.call('INCR', KEYS[1]) return 'yes'`,
	func(reply string) bool { return reply == "yes" })

// openLonely opens a store whose writes a replica has to confirm, and there is none.
func openLonely(t *testing.T, timeout time.Duration) (*Store, *redistest.Server) {
	t.Helper()
	server := redistest.Alone(t)
	store, err := Open(Options{URL: server.URL(), Confirm: 1, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store, server
}

func askFor(store *Store, word string) error {
	call, err := store.Begin(context.Background(), store.Prefix()+"key")
	if err != nil {
		return err
	}
	defer call.End()
	_, err = call.Ask(deciding, word)
	return err
}

// Replicas that lag keep nobody from asking the master, which is well.
func TestManyWaitForReplicas(t *testing.T) {
	t.Parallel()
	store, server := openLonely(t, 2*time.Second)
	const many = 64
	failed := make(chan error, many)
	for range many {
		go func() { failed <- askFor(store, "yes") }()
	}
	for range many {
		if err := <-failed; !errors.Is(err, errUnconfirmed) {
			t.Errorf("%v", err)
		}
	}
	if err := askFor(store, "no"); err != nil || store.Away() != 0 {
		t.Errorf("a no afterwards: %v; %d servers are away", err, store.Away())
	}
	if n, err := server.Client().Get(context.Background(), "mailgate:{}key").Int(); n != many || err != nil {
		t.Errorf("the master has counted %d, %v", n, err)
	}
}

// A call that finds no place to wait in has done nothing, and says nothing of the server. A no
// needs none.
func TestTooManyWaitForReplicas(t *testing.T) {
	t.Parallel()
	store, server := openLonely(t, 2*time.Second)
	store.Watch(func(cause error) { t.Errorf("an outage: %v", cause) }, func(time.Duration) {})
	line, err := store.redis.line(context.Background(), store.Prefix()+"key")
	if err != nil {
		t.Fatal(err)
	}
	for range confirming {
		line.confirming <- struct{}{}
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := askFor(store, "yes"); !errors.Is(err, errCrowded) || !Undone(err) {
				t.Errorf("a yes: %v, undone %v", err, Undone(err))
			}
		})
	}
	all.Wait()
	if err := askFor(store, "no"); err != nil || store.Away() != 0 {
		t.Errorf("a no: %v; %d servers are away", err, store.Away())
	}
	if n := server.Client().Exists(context.Background(), "mailgate:{}key").Val(); n != 0 {
		t.Error("it was counted")
	}
}
