package local_test

import (
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// What there is nothing to count in, or by, is an error at once.
func TestWithoutADiskOrAPolicy(t *testing.T) {
	if _, err := local.New(nil, local.Options{Policy: throttle.DefaultPolicy()}); err == nil {
		t.Error("a limiter without a disk")
	}
	if _, err := local.New(cachetest.Open(t, cache.Memory), local.Options{}); err == nil {
		t.Error("a limiter without a policy")
	}
	if _, err := local.NewMeters(nil, local.MetersOptions{}); err == nil {
		t.Error("meters without a disk")
	}
}
