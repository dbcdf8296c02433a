package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// The client library sends nothing twice: what ran has run once when its answer is lost, and
// also when all that is still under way has come to its end.
func TestTheLibraryRepeatsNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	for lost, lose := range map[string]func(*redistest.FaultyProxy, int, ...string){
		"dropped": (*redistest.FaultyProxy).DropReplies,
		"cut off": (*redistest.FaultyProxy).CutReplies,
	} {
		for confirm := range 2 {
			name := fmt.Sprintf("%s, %d to confirm", lost, confirm)
			proxy := redistest.Proxy(t, server.Addr)
			store := prepared(t, redisstore.Options{URL: proxy.URL(), Timeout: 2 * time.Second, Confirm: confirm})
			lose(proxy, 1, "evalsha")
			onceUnheard(t, store, name, proxy)
			if runs := server.Client().Get(context.Background(), store.Prefix()+name).Val(); runs != "1" {
				t.Errorf("%s: run %q times", name, runs)
			}
		}
	}
}

// A connection that breaks while replicas are waited for is the library's to forget, and the
// store's to ask again by another, where the step may be done twice.
func TestAWaitThatBreaksIsAskedAgain(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t, "repl-diskless-sync-delay 0")
	host, port, _ := net.SplitHostPort(master.Addr)
	redistest.Alone(t, "replicaof "+host+" "+port)
	proxy := redistest.Proxy(t, master.Addr)
	store := prepared(t, redisstore.Options{URL: proxy.URL(), Timeout: 5 * time.Second, Confirm: 1})
	answered(t, store)
	before := proxy.Commands("wait")
	proxy.CutReplies(1, "wait")
	if _, err := begin(t, store, "key").Ask(count); err != nil || proxy.Commands("wait") != before+2 {
		t.Errorf("%v, and was asked %d times", err, proxy.Commands("wait")-before)
	}
}

// Neither does it what is no script, such as the question whether Redis takes writes.
func TestTheLibraryRepeatsNoTrial(t *testing.T) {
	t.Parallel()
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	store := prepared(t, redisstore.Options{URL: proxy.URL(), Timeout: 5 * time.Second})
	proxy.CutReplies(1, "set")
	err := store.Ready(context.Background())
	store.Close()
	if n := proxy.Commands("set"); err == nil || n != 2 { // the second is the prober's
		t.Errorf("%v, and it was tried %d times", err, n)
	}
}

// In a Cluster the library goes to where a slot has moved, or is moving. What it has sent
// there it does not send again.
func TestTheLibraryRepeatsNothingElsewhere(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	const prefix = "{moving}"
	from := servers.MasterOf(prefix)
	to := servers.AnotherMaster(from)
	proxy := servers.ProxyBefore(to)
	var stores []*redisstore.Store
	open := func() {
		stores = nil
		for confirm := range 2 {
			stores = append(stores, prepared(t, redisstore.Options{URL: servers.URL(), Prefix: prefix, Timeout: 5 * time.Second, Confirm: confirm}))
		}
	}
	var names []string
	follow := func(word string) {
		t.Helper()
		for confirm, store := range stores {
			name := fmt.Sprintf("%s, %d to confirm", word, confirm)
			before := from.Refused(word)
			proxy.CutReplies(1, "evalsha", "eval")
			onceUnheard(t, store, name, proxy)
			if from.Refused(word) == before {
				t.Errorf("%s: nobody was sent on", name)
			}
			names = append(names, name)
		}
	}
	servers.BeginMigration(prefix, from, to)
	open()
	follow("ASK")
	open() // the slot is still where it was
	servers.FinishMigration(prefix, from, to)
	follow("MOVED")
	for _, name := range names {
		if runs := to.Client().Get(context.Background(), prefix+name).Val(); runs != "1" {
			t.Errorf("%s: run %q times", name, runs)
		}
	}
}

// prepared is a store whose servers have the script count.
func prepared(t *testing.T, o redisstore.Options) *redisstore.Store {
	t.Helper()
	store := open(t, o)
	store.Use(count)
	if _, err := store.Prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	return store
}

// onceUnheard counts once, of which the answer is lost, and returns when all that the store
// has sent has come to its end.
func onceUnheard(t *testing.T, store *redisstore.Store, key string, proxy *redistest.FaultyProxy) {
	t.Helper()
	before := proxy.Counts().Lost
	reply, err := begin(t, store, key).Once(count)
	store.Close()
	if lost := proxy.Counts().Lost - before; err == nil || lost != 1 {
		t.Errorf("%s: %q, %v, and %d answers were lost", key, reply, err, lost)
	}
}
