package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// A step is one call of a request, how it came out and how long that took.
type step struct {
	reply string
	err   error
	took  time.Duration
}

func stepOf(ctx context.Context, store *redisstore.Store, key string) (s step) {
	began := time.Now()
	call, err := store.Begin(ctx, store.Prefix()+key)
	if err != nil {
		return step{err: err}
	}
	defer call.End()
	s.reply, s.err = call.Ask(count)
	s.took = time.Since(began)
	return s
}

// asked fails the test unless the step waited for the server, in vain.
func (s step) asked(t *testing.T, what string) {
	t.Helper()
	if s.err == nil || errors.Is(s.err, redisstore.ErrNotAsked) || s.took < quick*8/10 {
		t.Errorf("%s came out as %v after %v, want it to wait for %v", what, s.err, s.took, quick)
	}
}

// spared fails the test unless the step was not even begun.
func (s step) spared(t *testing.T, what string) {
	t.Helper()
	if !errors.Is(s.err, redisstore.ErrNotAsked) || !redisstore.Undone(s.err) || s.took > quick*8/10 {
		t.Errorf("%s came out as %v after %v", what, s.err, s.took)
	}
}

// The steps of a request that come after one which was not answered fail at once, whatever
// becomes of its context, and other requests are asked all the same.
func TestARequestWaitsOnce(t *testing.T) {
	t.Parallel()
	store, server := openReady(t, quick)
	bounded, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ours, another := redisstore.Patience(bounded), redisstore.Patience(context.Background())
	within, end := context.WithTimeout(ours, time.Minute)
	defer end()

	server.Pause()
	stepOf(within, store, "first").asked(t, "the first step")
	stepOf(within, store, "second").spared(t, "the second step")
	stepOf(context.WithoutCancel(within), store, "last").spared(t, "the last step")
	stepOf(another, store, "first").asked(t, "another request's step")
	stepOf(another, store, "second").spared(t, "its second step")

	server.Resume()
	redistest.Healed(t, func() (string, error) {
		s := stepOf(redisstore.Patience(context.Background()), store, "after")
		return s.reply, s.err
	})
	if s := stepOf(ours, store, "at the end"); s.err != nil {
		t.Errorf("a step after the server is back: %v", s.err)
	}
}

// Whoever has the LongestWait and a little has time left when his steps have learnt that a server
// hangs.
func TestLongestWait(t *testing.T) {
	t.Parallel()
	const timeout = 4 * quick
	store, server := openReady(t, timeout)
	server.Pause()
	defer server.Resume()
	request, cancel := context.WithTimeout(redisstore.Patience(context.Background()), redisstore.LongestWait(timeout)+timeout/10)
	defer cancel()
	for range 3 {
		if s := stepOf(request, store, "key"); s.err == nil || request.Err() != nil {
			t.Fatalf("a step came out as %v after %v, and %v is left", s.err, s.took, request.Err())
		}
	}
}

// Where the server is there and only an answer was lost, the next step is asked.
func TestALostAnswerSparesNoStep(t *testing.T) {
	t.Parallel()
	proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
	store := open(t, redisstore.Options{URL: proxy.URL(), Timeout: 4 * quick})
	answered(t, store)
	request := redisstore.Patience(context.Background())
	proxy.DropReplies(1, "evalsha")
	if s := stepOf(request, store, "first"); s.err == nil || s.took < 3*quick {
		t.Fatalf("the first step came out as %v after %v", s.err, s.took)
	}
	if s := stepOf(request, store, "second"); s.err != nil {
		t.Errorf("the second step: %v after %v", s.err, s.took)
	}
}

// Nobody waits in vain for a server that is not there, so each step is asked.
func TestWhoIsNotKeptWaitingIsAsked(t *testing.T) {
	t.Parallel()
	store, server := openReady(t, quick)
	server.Kill()
	request := redisstore.Patience(context.Background())
	for _, key := range []string{"first", "second"} {
		if s := stepOf(request, store, key); s.err == nil || errors.Is(s.err, redisstore.ErrNotAsked) {
			t.Errorf("the %s step came out as %v after %v", key, s.err, s.took)
		}
	}
}

// Steps that are taken at once wait together.
func TestStepsAtOnceWaitTogether(t *testing.T) {
	t.Parallel()
	store, server := openReady(t, quick)
	server.Pause()
	request := redisstore.Patience(context.Background())
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() { stepOf(request, store, fmt.Sprint("key", i)).asked(t, "one of two") })
	}
	all.Wait()
	stepOf(request, store, "key").spared(t, "the step after them")
}

// A request that waited for one master of a Cluster goes on to ask the others.
func TestARequestAsksTheOtherMasters(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	for _, s := range servers.Masters { // or they refuse all, once they miss the one that hangs
		if err := s.Client().ConfigSet(context.Background(), "cluster-require-full-coverage", "no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	store := open(t, redisstore.Options{URL: servers.URL(), Timeout: quick})
	hangs := servers.Masters[0]
	var its, others []string
	for i := 0; len(its) < 2 || len(others) < 2; i++ {
		key := fmt.Sprint("key", i)
		if servers.MasterOf(store.Prefix()+key) == hangs {
			its = append(its, key)
		} else {
			others = append(others, key)
		}
	}
	for _, key := range append(its, others...) {
		if s := stepOf(context.Background(), store, key); s.err != nil {
			t.Fatal(s.err)
		}
	}
	request := redisstore.Patience(context.Background())
	hangs.Pause()
	defer hangs.Resume()
	stepOf(request, store, its[0]).asked(t, "a step on the one that hangs")
	stepOf(request, store, its[1]).spared(t, "another on it")
	for _, key := range others {
		if s := stepOf(request, store, key); s.err != nil {
			t.Errorf("a step on another master: %v after %v", s.err, s.took)
		}
	}
}

// A master whose replicas do not confirm is asked all the same: it has answered, and decides.
func TestARequestAsksAMasterWithoutReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Alone(t)
	store := open(t, redisstore.Options{URL: master.URL(), Timeout: quick, Confirm: 1})
	request := redisstore.Patience(context.Background())
	for i := range 2 {
		if s := stepOf(request, store, "key"); s.err == nil || redisstore.Undone(s.err) {
			t.Errorf("step %d came out as %v", i, s.err)
		}
	}
	if n, err := master.Client().Get(context.Background(), store.Prefix()+"key").Result(); n != "2" || err != nil {
		t.Errorf("the master has done %s of 2 steps: %v", n, err)
	}
}
