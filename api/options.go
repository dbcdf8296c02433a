package api

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/nodes"
	"github.com/mailgate/mailgate/internal/notme"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/suppression/bounce"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/prometheus/client_golang/prometheus"
)

// Options are what a Server works with. All are required unless their comment says otherwise.
type Options struct {
	Delivery *delivery.Service
	Ledger   *ledger.Ledger
	Nodes    *nodes.Nodes // that share a Redis; nil without one

	// Identity says which addresses are one mailbox, and names them in logs. The zero Identity folds nothing.
	Identity   address.Identity
	Access     Access
	RateLimits RateLimits

	// Hooks take the calls of other systems, and have names that no API key has. It may be empty. Bounces applies
	// what they report.
	Hooks   []hooks.Hook
	Bounces *bounce.Receiver

	// TryRules reads the rules that a reload would put in force, over empty records of their own and by the given clock.
	// Tiers, if not nil, replace those of mailboxes. The caller calls done.
	TryRules func(now func() int64, tiers *throttle.Policy) (set *rules.Set, done func(), err error)

	// Turnstile is a challenge beside the proof of work, for rules that have one. Nil for none.
	Turnstile *challenge.Turnstile

	NotMe *notme.Links // in emails

	// Secret seals countdown tokens, and keys the hashes of requests, and of subjects in logs. Servers that share their
	// records share it as well. 16 bytes or more, impossible to guess.
	Secret []byte
	// Guesses is the limiter of codes, which operators read and reset.
	Guesses *throttle.Limiter
	// Suppressions are the recipients who get no email.
	Suppressions *suppression.List
	// SendDeadline bounds a request as a whole, decision and relay.
	SendDeadline time.Duration

	// MaxConnections are open at once; the next ones wait. RequestsPerKey says how many of them one
	// caller can use.
	MaxConnections int
	// Ops moves /metrics from Serve to ServeOps. Both serve the health checks.
	Ops bool

	Tracer *trace.Tracer // of requests with a key; nil for none

	Health  Health
	Log     *slog.Logger
	Audit   Audit
	Metrics *prometheus.Registry // of the server, as /metrics shows it
	Docs    Docs
	Now     func() int64 // Unix milliseconds
}

// Access says who may call.
type Access struct {
	// APIKeys open the routes of applications and AdminKeys those of operators, which are closed
	// if there are API keys only. Without keys every program that reaches the listener is a
	// caller, so it should be a loopback one: then the Host must be a loopback one, too. Requests
	// that a page of another site made a browser send are refused, and those that a proxy has
	// forwarded, unless TrustedProxies are set.
	APIKeys, AdminKeys apikey.Keys
	// TrustedProxies are the networks whose X-Forwarded-For is trusted. It may be empty.
	TrustedProxies []netip.Prefix
}

// RateLimits bound requests other than sends.
type RateLimits struct {
	// Lookups bounds how often a caller may look mailboxes up, and an operator may read or reset. Without keys it
	// counts network addresses. So a stolen key cannot list which mailboxes were sent email. Nil is no bound.
	Lookups *throttle.Limiter
	// Countdowns bounds how often a network address may ask for the remaining wait. Nil is no
	// bound.
	Countdowns *throttle.Limiter

	WrongKeys *throttle.Limiter // of each network.KeyOf, through all doors
}

// Health is how the parts that the server depends on are.
type Health struct {
	// Ready returns an error while the stores cannot be used.
	Ready func(context.Context) error
	// StoreTimeout is how long a store may take to say whether it is ready.
	StoreTimeout time.Duration
	// Degraded is since when this server continues without the history that it shares with others, in Unix milliseconds, and
	// how many operations that lacks; 0 while it does not.
	Degraded   func() (since int64, lacks int)
	RelayStats func() []relay.Stats // for the gauges and the console
}

// Audit is the log of what operators did.
type Audit struct {
	Log *slog.Logger
	// Ready waits until the log can be written. It is asked before an operator's action.
	Ready func(context.Context) error
}

// Docs are what the server says of itself.
type Docs struct {
	OpenAPI []byte // what /openapi.yaml and /openapi.json show
	Version string // what the docs and the metrics say
	Dev     bool   // the pages link to those of mailgate dev
}
