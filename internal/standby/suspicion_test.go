package standby_test

import (
	"context"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/prober"
	"github.com/mailgate/mailgate/internal/redistest"
)

// What is wrong with one key, one reply or one caller says nothing of its master.
func TestTake_ErrorOfOneCall_MasterIsNotSuspected(t *testing.T) {
	for name, fails := range map[string]func(t *testing.T, server *redistest.Server, n *node) error{
		"a key of another type": func(t *testing.T, server *redistest.Server, n *node) error {
			must.OK(t, server.Client().SAdd(t.Context(), prefix+":mailbox:tiers:{alice}", "x").Err())
			_, err := n.mailbox.Take(t.Context(), "alice")
			return err
		},
		"a code's key of another type": func(t *testing.T, server *redistest.Server, n *node) error {
			must.OK(t, server.Client().SAdd(t.Context(), prefix+":codes:{alice}", "x").Err())
			_, err := n.codes.Issue(t.Context(), alice)
			return err
		},
		"a caller whose time ends": func(t *testing.T, server *redistest.Server, n *node) error {
			server.Pause()
			defer server.Resume()
			brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := n.mailbox.Take(brief, "alice")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t)
			n := start(t, server.URL())
			n.admit(t, "bob", false)
			unavailable(t, fails(t, server, n))
			if m := n.prober.MasterOf("alice"); m.State() != prober.Here || m.Cause() != nil {
				t.Errorf("the master is in state %d, for %v", m.State(), m.Cause())
			}
		})
	}
}
