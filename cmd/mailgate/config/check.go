package config

import (
	"errors"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"

	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
)

// AfterApply checks the ranges of the settings and whether they go together. Kong calls it when all
// values are known.
func (c *Config) AfterApply(public published) error {
	for name, parsed := range c.given {
		parsed.text = "" // it may be a secret
		c.given[name] = parsed
	}
	// Alone a node cannot keep what redis-confirm promises, and without a directory it would
	// forget its records when it restarts.
	if !c.Given("on-store-outage") && (c.RedisConfirm > 0 || c.RedisURL != "" && !c.hasDataDir()) {
		c.OnStoreOutage = "refuse"
	}
	if err := c.checkRanges(); err != nil {
		return err
	}
	// The relay of the trial in docker-compose.yml delivers nothing.
	if slices.ContainsFunc(c.SMTPURL, func(url relay.URL) bool { return url.Addr() != "mailpit:1025" }) {
		for _, name := range slices.Sorted(maps.Keys(public)) {
			return c.Complain(name, "has a secret of an example or of docker-compose.yml, which anyone can read; make one: openssl rand -hex 16")
		}
	}
	return c.firstWrong([]rule{
		{c.RedisConfirm > 0 && c.Standby(), "on-store-outage", "cannot be continue beside MAILGATE_REDIS_CONFIRM, as a node alone has no replicas to confirm a send; set refuse, or MAILGATE_REDIS_CONFIRM to 0"},
		{c.Standby() && !c.hasDataDir(), "on-store-outage", "continue needs a directory for the records of this node; set MAILGATE_DATA_DIR, or MAILGATE_ON_STORE_OUTAGE to refuse"},
		{c.OpsListen == c.Listen && !strings.HasSuffix(c.Listen, ":0"), "ops-listen", "must be another address than MAILGATE_LISTEN"},
		{c.SMTPRate > 0 && c.SMTPRate < relay.SlowestPace, "smtp-rate", "must be 0 for unlimited, or at least 0.000001"},
		{c.APIKeys.Shares(c.AdminKeys.Keys), "admin-keys", "has a secret that is in MAILGATE_API_KEYS too, which would make every back end an operator; make another: openssl rand -hex 16"},
		{c.DrainDelay > 0 && c.DrainDelay >= c.ShutdownGrace, "drain-delay", "must be shorter than MAILGATE_SHUTDOWN_GRACE, which includes it"},
		{c.CodeLife%time.Millisecond != 0, "code-life", "must be whole milliseconds"},
		{strings.Contains(c.URL, "@"), "url", "must have no user and password; the key is the first of admin_keys"},
	})
}

// Together checks the settings that must go together. It is apart from the other checks because it needs secrets that
// only the service has: commands that ask a node, such as show, do without it.
func (c *Config) Together() error {
	turnstile := c.TurnstileSecret != ""
	return c.firstWrong(slices.Concat(c.needRules(), c.submissionRules(), c.hookRules(), c.eventRules(), []rule{
		{turnstile && c.TurnstileSitekey == "", "turnstile-sitekey", "must be set with MAILGATE_TURNSTILE_SECRET, as pages cannot show the challenge without it"},
		{turnstile && len(c.TurnstileHosts) == 0, "turnstile-hosts", "must be set with MAILGATE_TURNSTILE_SECRET, to the hosts of the pages that show the challenge: acme.example"},
	}))
}

// needRules are those of the needs tags.
func (c *Config) needRules() (all []rule) {
	for field := range reflect.TypeFor[Config]().Fields() {
		if name, needed := field.Tag.Get("name"), field.Tag.Get("needs"); needed != "" {
			all = append(all, rule{c.Given(name) && !c.Given(needed), name, "has no effect without " + envName(needed) + "; set that too, or leave this out"})
		}
	}
	return all
}

// ForServing checks what serve needs beyond valid settings.
func (c *Config) ForServing() error {
	if err := c.Together(); err != nil {
		return err
	}
	err := c.firstWrong([]rule{
		{!c.Loopback() && c.APIKeys.IsZero(), "api-keys", "must be set to listen on " + c.Listen + "; without keys, mailgate serves on loopback only"},
		{c.APIKeys.IsZero() && len(c.TrustedProxies) > 0, "api-keys", "must be set beside MAILGATE_TRUSTED_PROXIES; without keys, mailgate serves this machine only"},
	})
	if err != nil {
		return err
	}
	if err := c.ForSending(); err != nil {
		return err
	}
	return c.firstWrong([]rule{
		{c.RedisURL != "" && len(c.Secret) == 0, "secret", "must be set with MAILGATE_REDIS_URL, to the same for all nodes; make one: openssl rand -hex 16"},
	})
}

// ForSending checks what a command needs that sends email.
func (c *Config) ForSending() error {
	return c.firstWrong([]rule{
		{len(c.SMTPURL) == 0, "smtp-url", "must be set to the relay, such as smtps://user:password@host"},
		{c.From.Address.IsZero(), "from", "must be set to the sender, such as Acme <no-reply@acme.example>"},
	})
}

type rule struct {
	wrong         bool
	name, problem string
}

func (c *Config) firstWrong(rules []rule) error {
	for _, r := range rules {
		if r.wrong {
			return c.Complain(r.name, r.problem)
		}
	}
	return nil
}

// checkRanges applies the validate tags.
func (c *Config) checkRanges() error {
	check := validator.New(validator.WithRequiredStructEnabled())
	check.RegisterTagNameFunc(func(field reflect.StructField) string { return field.Tag.Get("name") })
	listen := check.RegisterValidation("listen", func(f validator.FieldLevel) bool { return isListenAddress(f.Field().String()) })
	name := check.RegisterValidation("name", func(f validator.FieldLevel) bool { return throttle.CheckName(f.Field().String()) == nil })
	if err := errors.Join(listen, name); err != nil {
		return err
	}
	err := check.Struct(c)
	if wrong, ok := errors.AsType[validator.ValidationErrors](err); ok {
		return c.Complain(wrong[0].Field(), sentence(wrong[0].Tag(), wrong[0].Param()))
	}
	return err
}

// sentence says what a validate tag asks for.
func sentence(tag, param string) string {
	switch tag {
	case "gte":
		return "must be at least " + param
	case "lte":
		return "must be at most " + param
	case "oneof":
		return "must be one of: " + strings.Join(strings.Fields(param), ", ")
	case "listen":
		return "must be host:port, such as 127.0.0.1:8080 or :8080, with a port from 0 to 65535"
	case "name":
		return "must be 1 to 32 lower-case letters, digits, - and _, and start with a letter"
	case "excludesall":
		return "must be a URL without a user, a query or a fragment"
	case "http_url":
		return "must be a URL such as http://127.0.0.1:8080"
	}
	return "must be set"
}

// isListenAddress accepts host:port with a host that may be empty.
func isListenAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	n, _ := strconv.ParseUint(port, 10, 16)
	return err == nil && !strings.ContainsAny(host, " /@") && strconv.FormatUint(n, 10) == port
}
