package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

// An option that cannot be right is named.
// A patient limiter and a patient keeper note how long they may take.
type patientLimiter struct {
	throttle.Limiter
	left *time.Duration
}

func (l patientLimiter) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	*l.left = timeLeft(ctx)
	return l.Limiter.Release(ctx, key, id)
}

type patientKeeper struct {
	idempotency.Keeper
	left *time.Duration
}

func (k patientKeeper) Finish(ctx context.Context, lease idempotency.Lease, a idempotency.Answer) (bool, error) {
	*k.left = timeLeft(ctx)
	return k.Keeper.Finish(ctx, lease, a)
}

func timeLeft(ctx context.Context) time.Duration {
	end, _ := ctx.Deadline()
	return time.Until(end)
}

// Wherever a store is to say itself whether it is away, it has as long as is set.
func TestStorePatience(t *testing.T) {
	const set = 12 * time.Second
	var ready, guess, answer time.Duration
	r := newRig(t, setup{options: func(o *api.Options) {
		o.StorePatience = set
		o.Ready = func(ctx context.Context) error { ready = timeLeft(ctx); return nil }
		o.Guesses = patientLimiter{o.Guesses, &guess}
		o.Repeats.Answers = patientKeeper{o.Repeats.Answers, &answer}
	}})
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
	r.try("alice@example.com", sixDigits.FindString(r.arrived("alice@example.com").Text)).is(t, 200, "")
	is("a guess to be given back", guess)
}

func TestOptions(t *testing.T) {
	r := newRig(t, setup{})
	keys := must(api.ParseKeys("a:same-secret"))(t)
	tests := map[string]func(*api.Options){
		"Live.Rules":     func(o *api.Options) { o.Live.Rules = nil },
		"Live.Composer":  func(o *api.Options) { o.Live.Composer = nil },
		"limiter":        func(o *api.Options) { o.Live.Actions = map[string]throttle.Limiter{"reply": nil} },
		"Re/ply":         func(o *api.Options) { o.Live.Actions = map[string]throttle.Limiter{"Re/ply": r.limiter} },
		"Sender":         func(o *api.Options) { o.Sender = nil },
		"secret":         func(o *api.Options) { o.APIKeys, o.AdminKeys = keys, keys },
		"Secret":         func(o *api.Options) { o.Secret = []byte("fifteen letters") },
		"Guesses":        func(o *api.Options) { o.Codes = r.codes },
		"HandedOver":     func(o *api.Options) { o.Repeats.Answers = r.repeats.Answers },
		"Answers":        func(o *api.Options) { o.Repeats.HandedOver = r.repeats.HandedOver },
		"CodeLife":       func(o *api.Options) { o.CodeLife = -1 },
		"MaxConnections": func(o *api.Options) { o.MaxConnections = -1 },
		"ReadTimeout":    func(o *api.Options) { o.ReadTimeout = -time.Second },
		"IdleTimeout":    func(o *api.Options) { o.IdleTimeout = -time.Second },
		"DrainDelay":     func(o *api.Options) { o.DrainDelay = -time.Second },
		"StorePatience":  func(o *api.Options) { o.StorePatience = api.LeaseRest },
		"is negative":    func(o *api.Options) { o.StorePatience = -time.Second },
	}
	for name, spoil := range tests {
		o := api.Options{Live: r.live(setup{}), Sender: newGated()}
		spoil(&o)
		if _, err := api.New(o); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "same-secret") || strings.Contains(err.Error(), "fifteen") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
