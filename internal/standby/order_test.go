package standby_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// An outage that ends while its first line is written is logged in this order.
func TestLog_OutageEndsAtOnce_AwayThenBack(t *testing.T) {
	redis := redistest.Durable(t)
	n := open(t, t.TempDir(), redis.URL())
	n.admit(t, "alice", false)
	release := n.log.holdLine("Redis is away")
	defer release()
	redis.Kill()
	done := make(chan bool)
	go func() { // it has no say in the test, but that it logs
		n.mailbox.Take(t.Context(), "alice")
		close(done)
	}()
	<-n.log.held
	redis.Restart()
	n.Start()
	servertest.Eventually(t, "Redis is asked again", func() bool { return n.State().Away == 0 })
	for end := time.Now().Add(500 * time.Millisecond); n.log.Count("Redis is back") == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // long enough for a line that does not wait
	}
	release()
	<-done
	servertest.Eventually(t, "both lines", func() bool { return n.log.Count("Redis is away") == 1 && n.log.Count("Redis is back") == 1 })
	if text := n.log.String(); strings.Index(text, "Redis is away") > strings.Index(text, "Redis is back") {
		t.Error(text)
	}
}
