package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
)

func timeLeft(ctx context.Context) time.Duration {
	end, _ := ctx.Deadline()
	return time.Until(end)
}

// Every wait for a store has the configured timeout.
func TestStoreTimeout_Set_IsKept(t *testing.T) {
	const set = 12 * time.Second
	var ready, answer time.Duration
	r := newRig(t, setup{options: func(o *api.Options) {
		o.StoreTimeout = set
		o.Ready = func(ctx context.Context) error { ready = timeLeft(ctx); return nil }
	}})
	r.keys.stop = func(ctx context.Context, to byte) {
		if to == answered {
			answer = timeLeft(ctx)
		}
	}
	is := func(what string, left time.Duration) {
		t.Helper()
		if left > set || left < set/2 {
			t.Errorf("%s has %v", what, left)
		}
	}
	r.do("GET", "/readyz", "", "").is(t, 200, "")
	is("/readyz", ready)
	ready = 0
	r.do("GET", "/admin/figures", opsKey, "").is(t, 200, "")
	is("/admin/figures", ready)
	r.once(`"key"`, "alice@example.com").is(t, 200, "")
	is("an answer to be kept", answer)
}

func TestNew_Secrets_Checked(t *testing.T) {
	r := newRig(t, setup{})
	for want, spoil := range map[string]func(*api.Options){
		"api: a secret is both an API key and an admin key": func(o *api.Options) { o.AdminKeys = o.APIKeys },
		"api: Secret: ": func(o *api.Options) { o.Secret = []byte("fifteen letters") },
	} {
		o := r.options
		spoil(&o)
		if _, err := api.New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
