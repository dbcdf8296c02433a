package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/throttle"
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

func TestNew_WrongOption_Named(t *testing.T) {
	r := newRig(t, setup{})
	keys := must(api.ParseKeys("a:same-secret"))(t)
	tests := map[string]func(*api.Options){
		"Live.Rules":     func(o *api.Options) { o.Live.Rules = nil },
		"Live.Composer":  func(o *api.Options) { o.Live.Composer = nil },
		"limiter":        func(o *api.Options) { o.Live.Actions = map[string]throttle.Limiter{"reply": nil} },
		"Re/ply":         func(o *api.Options) { o.Live.Actions = map[string]throttle.Limiter{"Re/ply": r.limiter} },
		"Relay":          func(o *api.Options) { o.Relay = nil },
		"secret":         func(o *api.Options) { o.APIKeys, o.AdminKeys = keys, keys },
		"Secret":         func(o *api.Options) { o.Secret = []byte("fifteen letters") },
		"Guesses":        func(o *api.Options) { o.Codes = r.options.Codes },
		"MaxConnections": func(o *api.Options) { o.MaxConnections = -1 },
		"ReadTimeout":    func(o *api.Options) { o.ReadTimeout = -time.Second },
		"IdleTimeout":    func(o *api.Options) { o.IdleTimeout = -time.Second },
		"DrainDelay":     func(o *api.Options) { o.DrainDelay = -time.Second },
		"StoreTimeout":   func(o *api.Options) { o.StoreTimeout = delivery.LeaseRest },
		"is negative":    func(o *api.Options) { o.StoreTimeout = -time.Second },
	}
	for name, spoil := range tests {
		o := api.Options{Live: r.live(setup{}), Relay: newGated()}
		spoil(&o)
		if _, err := api.New(o); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "same-secret") || strings.Contains(err.Error(), "fifteen") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
