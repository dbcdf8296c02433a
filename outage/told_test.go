package outage_test

import (
	"context"
	"testing"

	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/verify"
)

// A code that was made alone is told to Redis, and that it was told is not heard. It is right
// at most once, whatever becomes of it at another node before it is told again: there, at the
// node that made it, and when all is well again.
func TestACodeThatIsToldTwice(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(there *counter, code string)
		then      verify.Result
	}{
		"used": {func(there *counter, code string) {
			there.bring(code, verify.Correct)
		}, verify.Expired},
		"another used": {func(there *counter, code string) {
			there.bring(there.issue(), verify.Correct)
		}, verify.Expired},
		"reset": {func(there *counter, code string) {
			if err := there.Forget(context.Background(), vic.Mailbox); err != nil {
				there.t.Error(err)
			}
		}, verify.Expired},
		"guessed at": {func(there *counter, code string) {
			for range 5 {
				there.bring(other(code), verify.Incorrect)
			}
			there.bring(code, verify.Spent)
		}, verify.Spent},
		"nothing": {func(*counter, string) {}, verify.Correct},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t)
			line := redistest.Proxy(t, server.Addr)
			here, there := openCounter(t, line.URL()), openCounter(t, server.URL())
			here.bring("000000", verify.Expired) // it has to have met Redis
			mend := redisFaults["out of memory"](t, server, line)
			code := here.issue()
			line.CutReplies(1_000_000, "evalsha", "eval")
			mend()
			servertest.Eventually(t, "the code to be told", func() bool { return holdsCodes(server) })
			c.meanwhile(there, code)
			here.tellsNothing(code)
			lost := line.Counts().Lost
			servertest.Eventually(t, "the code to be told again", func() bool { return line.Counts().Lost > lost+6 })
			here.tellsNothing(code)
			if c.then != verify.Correct {
				there.bring(code, c.then)
			}
			line.Pass()
			awaitHealth(t, here.watch)
			here.bring(code, c.then)
			if c.then == verify.Correct {
				c.then = verify.Expired
			}
			here.bring(code, c.then)
			there.bring(code, c.then)
		})
	}
}

// holdsCodes reports whether there are codes of vic on a server.
func holdsCodes(s *redistest.Server) bool {
	return s.Client().Exists(context.Background(), codesOfVic).Val() == 1
}

var codesOfVic = "mailgate:verify.codes:{}" + vic.Mailbox

// A node that is killed while it tells of a code knows when it is back that it may have told.
func TestKilledWhileItTells(t *testing.T) {
	dir := t.TempDir()
	d := idleDeskOn(t, cachetest.Open(t, dir))
	d.check(first, verify.Expired) // it has to have met the shared book
	d.there.set(dead)
	d.add(first)
	d.there.set(none)
	d.there.during = func() {
		if err := d.disk.Close(); err != nil {
			t.Error(err)
		}
	}
	d.check(second, verify.Incorrect)
	if d.there.during != nil {
		t.Error("it told of nothing")
	}
	closeAtOnce(d.watch)

	again := idleDeskOn(t, cachetest.Open(t, dir))
	again.there.set(dead)
	again.nobodyKnows(first)
}

// A code that was used alone has those forgotten that were made before it, and none that others
// have mailed since, however late and often that is told.
func TestWhatWasMadeSinceIsNotForgotten(t *testing.T) {
	for name, lost := range map[string]bool{"told late": false, "told twice": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Alone(t)
			line := redistest.Proxy(t, server.Addr)
			here, there := openCounter(t, line.URL()), openCounter(t, server.URL())
			before := there.issue()
			here.bring(other(before), verify.Incorrect) // it has to have met Redis
			line.Refuse()
			here.bring(here.issue(), verify.Correct)
			if lost {
				line.CutReplies(1_000_000, "evalsha", "eval")
				servertest.Eventually(t, "the first to be forgotten", func() bool {
					return server.Client().StrLen(context.Background(), codesOfVic).Val() == 22
				})
			}
			since := there.issue()
			line.Pass()
			awaitHealth(t, here.watch)
			there.bring(before, verify.Incorrect)
			there.bring(since, verify.Correct)
		})
	}
}
