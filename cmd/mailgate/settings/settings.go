package settings

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/throttle"
)

// Settings are the values in force. The tags are all there is to know of a setting:
// its name, its default, the limits of its value, and a line for whoever sets it.
type Settings struct {
	Listen         string         `name:"listen" group:"Serving" default:"127.0.0.1:8080" validate:"listen,port" help:"address to serve on, host:port; port 0 takes a free one"`
	OpsListen      string         `name:"ops_listen" validate:"omitempty,listen,port" help:"address for /metrics, /livez and /readyz, which a flood does not reach; /metrics is then there alone"`
	APIKeys        Keys           `name:"api_keys" secret:"yes" help:"keys of back ends, name:secret,… with secrets of 16 characters or more; without any: loopback only, no key asked"`
	AdminKeys      Keys           `name:"admin_keys" secret:"yes" help:"keys of operators, for show and reset; with api_keys but none of these, operators' paths are closed"`
	TrustedProxies []netip.Prefix `name:"trusted_proxies" help:"proxies whose X-Forwarded-For is believed: 10.0.0.0/8,192.0.2.7"`
	MaxConnections int            `name:"max_connections" default:"10000" validate:"gte=1,lte=1000000" help:"connections open at once; beyond that one that waits for a request makes room, first one that never sent any"`
	LookupRate     int            `name:"lookup_rate" default:"50" validate:"gte=0,lte=1000000" help:"lookups of mailboxes and operators' steps a second for each key, or each client where no key is asked; 0 for any number"`
	CountdownRate  int            `name:"countdown_rate" default:"20" validate:"gte=0,lte=1000000" help:"countdowns of visitors' pages a second for each address of the network; 0 for any number"`
	Secret         Secret         `name:"secret" secret:"yes" help:"seals countdowns and hashes codes; made and kept in data_dir if not set; with redis_url it must be, alike for all"`
	DrainDelay     time.Duration  `name:"drain_delay" default:"0s" validate:"gte=0s,lte=5m" help:"how long to go on serving after SIGTERM with /readyz at 503, for the load balancer to notice"`
	ShutdownGrace  time.Duration  `name:"shutdown_grace" default:"30s" validate:"gte=0s,lte=1h" help:"how long requests in flight may take to finish after SIGTERM"`

	Tiers   throttle.Policy `name:"tiers" group:"The rule" default:"minute=1/60s,hour=5/1h,day=10/24h" help:"mails a mailbox may be sent: name=limit/window, in any order"`
	Rules   string          `name:"rules" help:"a YAML file of further rules, and of actions; read again on SIGHUP"`
	Guesses throttle.Policy `name:"guesses" default:"ten-minutes=5/10m,day=20/24h" help:"guesses at the codes of a mailbox, however many it was mailed: name=limit/window"`
	Fold    bool            `name:"fold" default:"true" help:"count letter case, +tag and dots that a provider ignores as one mailbox"`

	DataDir        string `name:"data_dir" group:"History on this machine" default:"mailgate-data" validate:"required" help:"where it is kept; :memory: for nowhere. With redis_url only where it is set, for the process's own history while redis is away"`
	Sync           bool   `name:"sync" default:"false" help:"wait for the drive at each send: survives a power cut, costs a flush"`
	CacheMailboxes int64  `name:"cache_mailboxes" default:"110000" validate:"gte=1,lte=1000000000" help:"mailboxes kept in memory; the rest is read back from disk"`
	CacheBytes     Bytes  `name:"cache_bytes" default:"28MiB" validate:"gte=65536" help:"memory for them, and once more for what other rules count: a number of bytes, or with KiB, MiB, GiB"`

	RedisURL     RedisURL      `name:"redis_url" group:"History in Redis" secret:"yes" help:"set it to share one history among many processes: redis://, rediss://, redis+sentinel://, redis+cluster://"`
	RedisPrefix  KeyPrefix     `name:"redis_prefix" default:"mailgate" help:"how all keys there begin, with a colon behind; two that share one redis, as staging and production, need one each"`
	RedisConfirm int           `name:"redis_confirm" default:"0" validate:"gte=0,lte=16" help:"replicas that must have a send before it is a yes; with any, no mail is sent without them, and on_store_outage is refuse"`
	RedisTimeout time.Duration `name:"redis_timeout" default:"250ms" validate:"gte=1ms,lte=10s" help:"the longest a request waits for a Redis that hangs"`

	OnStoreOutage string `name:"on_store_outage" default:"continue" validate:"oneof=continue refuse" help:"while redis is away: continue with this process's own history, or refuse (503), as without a data_dir or with redis_confirm"`

	SMTPURL      Relays         `name:"smtp_url" group:"Mail" secret:"yes" help:"the relay, or several in the order to try: smtps://user:pass@host, smtp://user:pass@host:587, smtp://host:25?tls=none"`
	From         message.Sender `name:"from" help:"the sender: Acme <no-reply@acme.example>"`
	SMTPMaxConns int            `name:"smtp_max_conns" default:"8" validate:"gte=1,lte=1000" help:"connections to a relay at once"`
	SMTPRate     float64        `name:"smtp_rate" default:"0" validate:"gte=0,lte=100000" help:"mails a second at most, evenly spaced; 0 for as they come"`
	SMTPQueue    int            `name:"smtp_queue" default:"100" validate:"gte=0,lte=100000" help:"mails that may wait for their turn under smtp_rate"`
	Templates    string         `name:"templates" help:"a directory of texts of your own, name/locale/{subject.txt,text.txt,body.html,expires.txt}; read again on SIGHUP"`
	Locale       string         `name:"locale" default:"en" help:"the language for whoever asks for none, or for one that is not there"`
	CodeLife     time.Duration  `name:"code_life" default:"10m" validate:"gte=1s,lte=24h" help:"how long a code that mailgate made is good for"`

	LogLevel  slog.Level `name:"log_level" group:"Log" default:"info" help:"debug, info, warn or error"`
	LogFormat string     `name:"log_format" default:"json" validate:"oneof=json text" help:"json or text"`

	URL string `name:"url" group:"Asking a running server" validate:"omitempty,http_url" help:"where show, reset and healthcheck find it; the address of listen if not set, for healthcheck that of ops_listen"`

	origins map[string]Origin
}

// An Origin is what a setting was given as, and where.
type Origin struct {
	Text string // of a secret, no more than that it was given
	// Place names the setting as whoever gave it wrote it: "--tiers", "MAILGATE_TIERS",
	// "mailgate.yaml:3: tiers". Of a default it is the bare name.
	Place string
	Level Level
}

// A Level is one of the places that settings come from.
type Level int

// The levels; a higher one wins.
const (
	Default Level = iota
	File
	Environment
	Flag
)

func (l Level) String() string {
	return [...]string{"default", "file", "environment", "flag"}[l]
}

// Given reports whether somebody set it.
func (o Origin) Given() bool { return o.Level != Default }

// Origin is where the setting of this name comes from.
func (s *Settings) Origin(name string) Origin { return s.origins[name] }
