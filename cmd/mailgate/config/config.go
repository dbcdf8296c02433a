// Package config holds every setting of mailgate, read and checked before anything starts.
//
// A setting has one name and up to four sources. The first that has it wins:
//
//	flag         --smtp-url smtps://…
//	environment  MAILGATE_SMTP_URL=smtps://…
//	file         smtp_url: smtps://…          in the YAML file of --config or MAILGATE_CONFIG
//	default
//
// A secret can also be in a file of its own: --smtp-url-file, MAILGATE_SMTP_URL_FILE,
// smtp_url_file. An invalid value is an [Error] of one line that names the setting as it was
// given. No error and no listing shows a secret.
package config

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/webhook"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/submission"
	"github.com/mailgate/mailgate/throttle"
)

// Config is the settings in force, to be embedded in a kong grammar. The tags define each setting:
// its name, default, bounds and help, and the setting that it needs to have an effect.
type Config struct {
	File string `name:"config" placeholder:"PATH" help:"YAML file with settings."`

	Listen         string         `group:"Server:" name:"listen" default:"127.0.0.1:8080" validate:"listen" help:"Address to serve on, host:port. Port 0 takes a free one."`
	OpsListen      string         `group:"Server:" name:"ops-listen" placeholder:"HOST:PORT" validate:"omitempty,listen" help:"Address for /metrics, /livez and /readyz, so that load on the API cannot block them. /metrics is then served only there."`
	APIKeys        Keys           `group:"Server:" name:"api-keys" help:"Keys of back ends: name:secret,name:secret, with secrets of at least 16 characters. Without any, mailgate serves only programs on this machine and needs no key."`
	AdminKeys      Keys           `group:"Server:" name:"admin-keys" help:"Keys of operators, for the console and for commands such as show and reset. With api-keys but none of these, the operator routes are disabled."`
	TrustedProxies []netip.Prefix `group:"Server:" name:"trusted-proxies" placeholder:"NETWORK" help:"Proxies whose X-Forwarded-For is trusted: 10.0.0.0/8,192.0.2.7."`
	MaxConnections int            `group:"Server:" name:"max-connections" default:"10000" validate:"gte=1,lte=1000000" help:"Maximum number of open connections. Beyond that, new ones wait."`
	LookupRate     int            `group:"Server:" name:"lookup-rate" default:"50" validate:"gte=0,lte=1000000" help:"Mailbox lookups and operator requests per second for each key, or for each client where no key is needed. 0 is unlimited."`
	Secret         Secrets        `group:"Server:" name:"secret" help:"Seals countdowns and hashes codes. If not set, one is made and kept in data-dir. Required with redis-url, the same for all nodes. Earlier values may follow, each after a |: bounces of emails sent under them still count."`
	DrainDelay     time.Duration  `group:"Server:" name:"drain-delay" default:"0s" validate:"gte=0s,lte=5m" help:"How long to keep serving after SIGTERM while /readyz answers 503, so that a load balancer notices."`
	ShutdownGrace  time.Duration  `group:"Server:" name:"shutdown-grace" default:"30s" validate:"gte=0s,lte=1h" help:"How long a shutdown may take after SIGTERM, with drain-delay. Then the process ends, whatever is in flight."`

	Tiers            throttle.Policy `group:"Limits:" name:"tiers" default:"minute=1/60s,hour=5/1h,day=10/24h" help:"Emails per mailbox: name=limit/window, in any order."`
	Rules            string          `group:"Limits:" name:"rules" placeholder:"PATH" help:"YAML file with more rules and actions. Read again on SIGHUP."`
	TurnstileSecret  Secret          `group:"Limits:" name:"turnstile-secret" placeholder:"SECRET" help:"Secret key of Cloudflare Turnstile, which rules with a challenge then accept beside the proof of work. Not set: off."`
	TurnstileSitekey string          `group:"Limits:" name:"turnstile-sitekey" needs:"turnstile-secret" placeholder:"SITEKEY" help:"Its site key, for pages."`
	TurnstileHosts   Names           `group:"Limits:" name:"turnstile-hosts" needs:"turnstile-secret" placeholder:"HOST" help:"Hosts of the pages that show it, with commas. A token solved elsewhere is refused."`

	Guesses throttle.Policy `group:"Limits:" name:"guesses" default:"ten-minutes=5/10m,day=20/24h" help:"Guesses at the codes of a mailbox, for all its codes together: name=limit/window."`
	Fold    bool            `group:"Limits:" name:"fold" default:"true" help:"Count addresses that differ only in letter case, +tag or dots that the provider ignores as one mailbox; --fold=false turns it off."`

	DataDir    string `group:"Records on disk:" name:"data-dir" default:"mailgate-data" validate:"required" help:"Directory of the records, or :memory:. With redis-url it is used only if set, for the records of this node during an outage of Redis."`
	Sync       bool   `group:"Records on disk:" name:"sync" default:"false" help:"Flush each send to the drive, to survive a power cut."`
	CacheBytes Bytes  `group:"Records on disk:" name:"cache-bytes" default:"28MiB" validate:"gte=65536,lte=1099511627776" help:"Memory for recently used records. The others are read from disk. With Redis half of it, or all without data-dir, remembers refusals. With :memory: it is the limit for all records. Bytes, or with KiB, MiB, GiB."`

	RedisURL      RedisURL      `group:"Records in Redis:" name:"redis-url" placeholder:"URL" help:"Redis that several nodes share: redis://, rediss://, redis+sentinel:// or redis+cluster://."`
	RedisPrefix   string        `group:"Records in Redis:" name:"redis-prefix" needs:"redis-url" default:"mailgate" validate:"name" help:"Prefix of all keys. Two deployments on one Redis need one each."`
	RedisConfirm  int           `group:"Records in Redis:" name:"redis-confirm" needs:"redis-url" default:"0" validate:"gte=0,lte=16" help:"Replicas that must confirm a send before it is admitted: 0, or the number that each master has. Above 0, on-store-outage is refuse."`
	RedisTimeout  time.Duration `group:"Records in Redis:" name:"redis-timeout" needs:"redis-url" default:"250ms" validate:"gte=1ms,lte=10s" help:"How long a request waits for Redis."`
	OnStoreOutage string        `group:"Records in Redis:" name:"on-store-outage" needs:"redis-url" default:"continue" validate:"oneof=continue refuse" help:"While Redis is away: continue with the records of this node, or refuse with 503, as without data-dir or with redis-confirm."`

	SMTPURL      Relays         `group:"Email:" name:"smtp-url" placeholder:"URL" help:"Relay, or several in the order to try: smtps://user:pass@host, smtp://user:pass@host:587, smtp://host:25?tls=none."`
	From         message.Sender `group:"Email:" name:"from" help:"Sender: Acme <no-reply@acme.example>."`
	SMTPMaxConns int            `group:"Email:" name:"smtp-max-conns" default:"8" validate:"gte=1,lte=1000" help:"Maximum connections to each relay."`
	SMTPRate     float64        `group:"Email:" name:"smtp-rate" default:"0" validate:"gte=0,lte=100000" help:"Maximum emails per second, evenly spaced. 0 is unlimited."`
	Templates    string         `group:"Email:" name:"templates" placeholder:"DIR" help:"Directory of your own templates, NAME/LOCALE/ with subject.txt, text.txt, body.html, expires.txt. Read again on SIGHUP."`
	Locale       string         `group:"Email:" name:"locale" default:"en" help:"Language of an email if the request names none or an unknown one."`
	CodeLife     time.Duration  `group:"Email:" name:"code-life" default:"10m" validate:"gte=1s,lte=24h" help:"How long a code is valid."`

	SubmissionListen         Doors              `group:"SMTP door:" name:"submission-listen" placeholder:"HOST:PORT" help:"Addresses to take email on by SMTP, for programs that can only be told an SMTP server: 127.0.0.1:2525, or several with commas; smtps://:465 speaks TLS from the first byte. Not set: off."`
	SubmissionTLSCert        string             `group:"SMTP door:" name:"submission-tls-cert" needs:"submission-listen" placeholder:"PATH" help:"Certificate chain, PEM. Required beyond loopback. Read again on SIGHUP."`
	SubmissionTLSKey         string             `group:"SMTP door:" name:"submission-tls-key" needs:"submission-listen" placeholder:"PATH" help:"Its private key, PEM."`
	SubmissionSenders        submission.Senders `group:"SMTP door:" name:"submission-senders" needs:"submission-listen" placeholder:"ADDRESS" help:"Addresses and @domains that email may be from, with commas. If not set, the address of from."`
	SubmissionDefer          Names              `group:"SMTP door:" name:"submission-defer" needs:"submission-listen" placeholder:"KEY" help:"Names of API keys whose email may come late: a limit answers 450 instead of 550, so that a mail queue tries again."`
	SubmissionMaxBytes       Bytes              `group:"SMTP door:" name:"submission-max-bytes" needs:"submission-listen" default:"1MiB" validate:"gte=1024,lte=10485760" help:"Maximum size of an email. Bytes, or with KiB, MiB."`
	SubmissionMaxConnections int                `group:"SMTP door:" name:"submission-max-connections" needs:"submission-listen" default:"100" validate:"gte=1,lte=10000" help:"Maximum number of open connections. One key can use half of them."`

	HookSupabase    hooks.Secrets `group:"Hooks:" name:"hook-supabase" placeholder:"SECRET" help:"Secret of Supabase Auth's Send Email Hook: v1,whsec_…, or several with | while one is replaced. Not set: off."`
	HookSupabaseURL string        `group:"Hooks:" name:"hook-supabase-url" needs:"hook-supabase" placeholder:"URL" validate:"omitempty,http_url,excludesall=@?#" help:"Address of Supabase Auth, where the links in its emails lead: https://PROJECT.supabase.co/auth/v1."`
	HookLogto       Secret        `group:"Hooks:" name:"hook-logto" placeholder:"AUTHORIZATION" help:"Authorization that Logto's HTTP email connector sends, such as Bearer and a secret. Not set: off."`
	HookLogtoURL    string        `group:"Hooks:" name:"hook-logto-url" needs:"hook-logto" placeholder:"URL" validate:"omitempty,http_url,excludesall=@?#" help:"Site that the links of Logto's invitations may lead to. Without it they are refused."`
	HookSES         Names         `group:"Hooks:" name:"hook-ses" placeholder:"ARN" help:"Topics of Amazon SNS to which SES reports bounces and complaints. Not set: off."`
	HookSendGrid    Secret        `group:"Hooks:" name:"hook-sendgrid" placeholder:"KEY" help:"Verification key of SendGrid's event webhook. Not set: off."`
	HookMailgun     Secret        `group:"Hooks:" name:"hook-mailgun" placeholder:"KEY" help:"Mailgun's HTTP webhook signing key. Not set: off."`
	HookPostmark    Secret        `group:"Hooks:" name:"hook-postmark" placeholder:"USER:PASSWORD" help:"User and password that Postmark's webhook sends. Not set: off."`
	HookResend      Secret        `group:"Hooks:" name:"hook-resend" placeholder:"SECRET" help:"Signing secret of Resend's webhook: whsec_… Not set: off."`
	HookBrevo       Secret        `group:"Hooks:" name:"hook-brevo" placeholder:"TOKEN" help:"Token that Brevo's webhook sends. Not set: off."`
	HookUnproven    bool          `group:"Hooks:" name:"hook-unproven" help:"Suppress for a bounce or complaint without a proof that mailgate sent the email, on the word of the provider alone."`
	PublicURL       string        `group:"Hooks:" name:"public-url" placeholder:"URL" validate:"omitempty,http_url,excludesall=@?#" help:"Address at which other systems and recipients of email reach this node. check-config shows the hooks there. If not set, that of listen; {{.NotMe}} in a template needs it."`

	EventsURL    string          `group:"Events:" name:"events-url" placeholder:"URL" validate:"omitempty,http_url,excludesall=@?#" help:"Where to post what becomes of each email, signed as Standard Webhooks. Not set: off."`
	EventsSecret webhook.Secrets `group:"Events:" name:"events-secret" needs:"events-url" placeholder:"SECRET" help:"Secret of the signatures: whsec_ and base64, or several with | while one is replaced."`

	LogLevel  string `group:"Log:" name:"log-level" default:"info" validate:"oneof=debug info warn error" help:"debug, info, warn or error."`
	LogFormat string `group:"Log:" name:"log-format" default:"json" validate:"oneof=json text" help:"json or text."`

	URL string `group:"Client:" name:"url" placeholder:"URL" validate:"omitempty,http_url" help:"Node that commands such as show and reset ask. If not set, the address of listen, and for healthcheck that of ops-listen."`

	given   settings
	unknown []string
	dev     bool // the command is dev, which has flags alone
}

// Given reports whether the setting of this name has another source than its default.
func (c *Config) Given(name string) bool { return c.Where(name) != "" }

// Where names a setting as it was given: "--tiers", "MAILGATE_TIERS" or
// "mailgate.yaml:3: tiers"; empty for a default.
func (c *Config) Where(name string) string { return c.given[name].where }

// OtherFlag returns a flag of the command line that is none of these, or an empty name.
func (c *Config) OtherFlag(flags []string) string {
	for _, name := range slices.Sorted(maps.Keys(c.given)) {
		if c.given[name].source == "flag" && !slices.Contains(flags, name) {
			return name
		}
	}
	return ""
}

// IsDev reports whether the command is dev.
func (c *Config) IsDev() bool { return c.dev }

// Unknown lists the MAILGATE_ variables that are no settings, each with a suggestion if a
// setting has a similar name.
func (c *Config) Unknown() []string { return c.unknown }

// Memory is the data-dir of records that end with the process.
const Memory = ":memory:"

// Standby reports whether the node keeps records of its own beside those in Redis, to
// continue with while Redis is away.
func (c *Config) Standby() bool { return c.RedisURL != "" && c.OnStoreOutage == "continue" }

// UsesDataDir reports whether the node keeps records in the data directory: the only ones,
// or beside Redis those for an outage.
func (c *Config) UsesDataDir() bool { return c.RedisURL == "" || c.Standby() }

// hasDataDir reports whether a directory was given that outlives the process.
func (c *Config) hasDataDir() bool { return c.Given("data-dir") && c.DataDir != Memory }

// Loopback reports whether only this machine can reach the address of listen.
func (c *Config) Loopback() bool { return isLoopback(c.Listen) }
