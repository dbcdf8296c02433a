package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/throttle"
)

// An option that cannot be right is named.
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
	}
	for name, spoil := range tests {
		o := api.Options{Live: r.live(setup{}), Sender: newGated()}
		spoil(&o)
		if _, err := api.New(o); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "same-secret") || strings.Contains(err.Error(), "fifteen") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
