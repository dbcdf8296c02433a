package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

func zero() int { return 0 }

// However late it is for the key of an attempt, the place is given back: it is the attempt's
// own. The key may be somebody else's by then, and is left alone.
func TestRefundAfterItsKey(t *testing.T) {
	var log bytes.Buffer
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults() // no keeper could free a key
	m, err := newMetrics(o, zero, zero)
	if err != nil {
		t.Fatal(err)
	}
	r := newRefunds(o, m)
	tries := 0
	r.now(context.Background(), refund{key: &attempt{requestID: "late", stop: time.Now().Add(-time.Second)}, release: func(context.Context) error {
		if tries++; tries == 1 {
			return errors.New("the store is away")
		}
		return nil
	}})
	r.close(context.Background())
	if said := log.String(); tries != 2 || strings.Contains(said, "given back") || strings.Count(said, "request_id=late") != 1 {
		t.Errorf("after %d tries the log says\n%s", tries, said)
	}
}

// stuck is a limiter that gives nothing back.
type stuck struct{ throttle.Limiter }

func (stuck) Release(context.Context, string, throttle.ID) (bool, error) {
	return false, errors.New("the store is away")
}

// What an operator resets is a subject of an action, so the log names the action as well.
func TestARefundGivenUpNamesItsAction(t *testing.T) {
	var log bytes.Buffer
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults()
	m, err := newMetrics(o, zero, zero)
	if err != nil {
		t.Fatal(err)
	}
	r := newRefunds(o, m)
	r.later(actionRefund(actionRequest{name: "login", limiter: stuck{}, subject: "user-4711"}, &call{subject: "41b0a8c2f7", id: throttle.NewID()}))
	r.close(context.Background())
	if said := log.String(); !strings.Contains(said, "given back") || !strings.Contains(said, " action=login subject=41b0a8c2f7 id=") {
		t.Errorf("the log says\n%s", said)
	}
}
