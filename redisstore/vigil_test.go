package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// heard is what a watch has told: the causes of outages that began, and an empty word for
// each that ended.
type heard chan string

func watch(store *redisstore.Store) heard {
	h := make(heard, 100)
	store.Watch(func(cause error) { h <- cause.Error() }, func(time.Duration) { h <- "" })
	return h
}

// next waits for the next word.
func (h heard) next(t *testing.T, what string) string {
	t.Helper()
	select {
	case word := <-h:
		return word
	case <-time.After(patient):
		t.Fatalf("nothing was heard of %s", what)
		return ""
	}
}

// forget waits until an outage is over, and forgets what was heard of it.
func (h heard) forget(store *redisstore.Store) {
	for end := time.Now().Add(patient); !store.AwaySince().IsZero() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	for len(h) > 0 {
		<-h
	}
}

// An outage of any kind begins once and ends once, however many calls it meets, and not
// because a call that only looks was answered.
func TestOutagesAreTold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	master := redistest.Alone(t, "repl-diskless-sync-delay 0")
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	set := func(name, value string) {
		if err := master.Client().ConfigSet(ctx, name, value).Err(); err != nil {
			t.Error(err)
		}
	}
	look := redisstore.NewScript(`return 'seen'`, nil)
	for name, tt := range map[string]struct {
		confirm    int
		begin, end func()
		cause      string
	}{
		"no replica confirms": {1, replica.Pause, replica.Resume, "replicas have not confirmed"},
		"out of memory":       {0, func() { set("maxmemory", "1") }, func() { set("maxmemory", "0") }, "OOM"},
		"dead":                {0, master.Kill, master.Restart, ""},
	} {
		store := open(t, redisstore.Options{URL: master.URL(), Confirm: tt.confirm, Timeout: 2 * time.Second})
		h := watch(store)
		redistest.Healed(t, func() (string, error) { return ask(t, store, name) })
		h.forget(store) // the first synchronisation
		tt.begin()
		for range 4 {
			if _, err := ask(t, store, name); err == nil {
				t.Errorf("%s: no error", name)
			}
			_, _ = begin(t, store, name).Ask(look) // answered or not, it tells nothing
		}
		if store.Ready(ctx) == nil || store.AwaySince().IsZero() {
			t.Errorf("%s: ready, or away since %v", name, store.AwaySince())
		}
		tt.end()
		if word := h.next(t, name); word == "" || !strings.Contains(word, tt.cause) || strings.Contains(word, store.Prefix()+name) {
			t.Errorf("%s: it began with %q", name, word)
		}
		if word := h.next(t, name); word != "" {
			t.Errorf("%s: it did not end but began with %q", name, word)
		}
		if _, err := ask(t, store, name); err != nil || len(h) > 0 || !store.AwaySince().IsZero() {
			t.Errorf("%s: afterwards %v, %d words, away since %v", name, err, len(h), store.AwaySince())
		}
		store.Close()
	}
}

// In a Cluster an outage lasts until each master that it was about is back.
func TestOutageOfAMaster(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	store := open(t, redisstore.Options{URL: servers.URL(), Timeout: 500 * time.Millisecond})
	h := watch(store)
	redistest.Healed(t, func() (string, error) { return ask(t, store, "here") })
	h.forget(store)
	master := servers.MasterOf(store.Prefix() + "here")
	servers.ReplicaOf(master).Pause() // nobody takes over
	master.Pause()
	if _, err := ask(t, store, "here"); err == nil {
		t.Error("no error")
	}
	if word := h.next(t, "the outage"); word == "" {
		t.Error("an end without a beginning")
	}
	if err := store.Ready(context.Background()); err != nil && !errors.Is(err, redisstore.ErrUnavailable) {
		t.Error(err)
	}
	select {
	case word := <-h:
		t.Errorf("while the master hangs: %q", word)
	case <-time.After(1200 * time.Millisecond): // two looks and more
	}
	master.Resume()
	if word := h.next(t, "the end"); word != "" {
		t.Errorf("instead of the end: %q", word)
	}
}

// What is wrong with one record is no outage, nor that somebody has gone.
func TestNoOutage(t *testing.T) {
	t.Parallel()
	store := open(t, redisstore.Options{URL: redistest.Alone(t).URL(), Timeout: 2 * time.Second})
	if !store.AwaySince().IsZero() {
		t.Error("away where nobody watches")
	}
	h := watch(store)
	if _, err := begin(t, store, "halfway").Ask(halfway); err == nil {
		t.Error("no error")
	}
	if len(h) > 0 || !store.AwaySince().IsZero() {
		t.Errorf("%d words, away since %v", len(h), store.AwaySince())
	}
}
