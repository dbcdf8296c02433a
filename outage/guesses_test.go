package outage_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/outage"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/verify"
	codes "github.com/mailgate/mailgate/verify/cluster"
)

// A counter is a node's desk in front of a real server: where codes are handed out, and
// brought.
type counter struct {
	*verify.Desk
	t       *testing.T
	watch   *outage.Watch
	guesses *cluster.Limiter // those of all
}

var vic = verify.Recipient{Mailbox: "vic@example.com", Address: "vic@example.com"}

func openCounter(t *testing.T, url string) *counter {
	t.Helper()
	store, err := redisstore.Open(redisstore.Options{URL: url, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	p, disk := verify.DefaultGuesses(), cachetest.Open(t, cache.Memory)
	guesses, err := cluster.New(store, p)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{t: t, guesses: guesses}
	c.watch, err = outage.NewWatch(outage.Options{
		Disk: disk, Shared: store.Ready, Now: store.Now, Pause: 20 * time.Millisecond,
		Away:  func(err error) bool { return errors.Is(err, redisstore.ErrAway) },
		Wrong: func(err error) bool { return errors.Is(err, redisstore.ErrReply) },
	})
	if err != nil {
		t.Fatal(err)
	}
	hasher, err := verify.NewHasher([]byte("a secret that all nodes share"))
	if err != nil {
		t.Fatal(err)
	}
	c.Desk, err = verify.NewDesk(verify.Options{
		Hasher: hasher, Book: c.watch.Book(codes.New(store)),
		Guesses: c.watch.Historian("guesses", p.Longest(), guesses, openLimiter(t, disk, p, store.Now)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.watch.Start()
	t.Cleanup(func() {
		closeAtOnce(c.watch)
		_ = store.Close() // its server may be gone
	})
	return c
}

func (c *counter) issue() string {
	c.t.Helper()
	code, err := c.Issue(context.Background(), vic)
	if err != nil {
		c.t.Fatal(err)
	}
	return code
}

func (c *counter) bring(code string, want verify.Result) {
	c.t.Helper()
	if o, err := c.Verify(context.Background(), vic, code); err != nil || o.Result != want {
		c.t.Errorf("%v, %v; want %v", o.Result, err, want)
	}
}

// tellsNothing wants a code to have no answer.
func (c *counter) tellsNothing(code string) {
	c.t.Helper()
	if o, err := c.Verify(context.Background(), vic, code); !errors.Is(err, verify.ErrUnavailable) && !errors.Is(err, throttle.ErrUnavailable) {
		c.t.Errorf("%v, %v", o.Result, err)
	}
}

// spent is how many guesses Redis has on record.
func (c *counter) spent() int {
	c.t.Helper()
	h, err := c.guesses.History(context.Background(), vic.Mailbox)
	if err != nil {
		c.t.Fatal(err)
	}
	return len(h)
}

// other is a code that these are not.
func other(codes ...string) string {
	for _, wrong := range []string{"000000", "000001"} {
		if !slices.Contains(codes, wrong) {
			return wrong
		}
	}
	return "000002"
}

// A Redis that can be read and not written counts no guess, so each node counts its own. Then
// no node tells anything of the codes that all know: else there would be as many guesses
// more, and what a right code finds, which is to be forgotten, would tell it from a wrong one.
func TestGuessesThatNobodyElseCounts(t *testing.T) {
	for _, name := range []string{"too few replicas", "out of memory", "read-only", "killed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t, "appendonly yes", "appendfsync always")
			line := redistest.Proxy(t, server.Addr)
			nodes := []*counter{openCounter(t, line.URL()), openCounter(t, line.URL()), openCounter(t, line.URL())}
			mailed := nodes[0].issue()
			for _, n := range nodes { // each has to have met Redis
				n.bring(other(mailed), verify.Incorrect)
			}
			mend := redisFaults[name](t, server, line)
			here := nodes[0].issue()
			for _, n := range nodes {
				n.tellsNothing(other(mailed, here))
				n.tellsNothing(mailed)
			}
			nodes[1].tellsNothing(here)
			nodes[0].bring(here, verify.Correct)
			mend()
			for _, n := range nodes {
				awaitHealth(t, n.watch)
			}
			if got := nodes[0].spent(); got != 3+6+1 {
				t.Errorf("%d guesses are on record", got)
			}
		})
	}
}
