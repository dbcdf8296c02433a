package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// Whatever a store is asked by default, a Redis that hangs costs the default timeout. Of some
// attempts the quickest counts: a busy machine makes an answer later and never earlier.
func TestTheDefaultTimeout(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	for name, question := range map[string]func(*redisstore.Store) error{
		"a script":      func(s *redisstore.Store) error { _, err := ask(t, s, "key"); return err },
		"whether ready": func(s *redisstore.Store) error { return s.Ready(context.Background()) },
		"to prepare":    func(s *redisstore.Store) error { _, err := s.Prepare(context.Background()); return err },
	} {
		quickest := time.Hour
		for try := 0; try < 20 && quickest > redisstore.DefaultTimeout*11/10; try++ {
			store := open(t, redisstore.Options{URL: server.URL()})
			answered(t, store)
			server.Pause()
			began := time.Now()
			if err := question(store); err == nil {
				t.Errorf("%s: answered by a server that hangs", name)
			}
			quickest = min(quickest, time.Since(began))
			server.Resume()
		}
		if quickest < redisstore.DefaultTimeout*9/10 || quickest > redisstore.DefaultTimeout*11/10 {
			t.Errorf("%s: the quickest took %v", name, quickest)
		}
	}
}

// answered waits until the store is ready.
func answered(t *testing.T, store *redisstore.Store) {
	t.Helper()
	redistest.Healed(t, func() (bool, error) { return true, store.Ready(context.Background()) })
}
