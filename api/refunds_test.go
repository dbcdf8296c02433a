package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// However late it is for the key of an attempt, the place is given back: it is the attempt's
// own. The key may be somebody else's by then, and is left alone.
func TestRefundAfterItsKey(t *testing.T) {
	var log bytes.Buffer
	o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults() // no keeper could free a key
	m, err := newMetrics(o, func() int { return 0 })
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
