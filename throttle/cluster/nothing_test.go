package cluster_test

import (
	"testing"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
)

// What there is nothing to count in, or by, is an error at once.
func TestWithoutAStoreOrAPolicy(t *testing.T) {
	if _, err := cluster.New(nil, throttle.DefaultPolicy()); err == nil {
		t.Error("a limiter without a store")
	}
	if _, err := cluster.New(openStore(t, redisstore.Options{URL: redistest.Alone(t).URL()}), throttle.Policy{}); err == nil {
		t.Error("a limiter without a policy")
	}
	if _, err := cluster.NewMeters(nil); err == nil {
		t.Error("meters without a store")
	}
}
