package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/mailgate/mailgate/mailer/relay"
)

// check looks at what single values cannot say: their ranges, and whether they go
// together.
func (s *Settings) check() error {
	if err := s.checkRanges(); err != nil {
		return err
	}
	for _, rule := range []struct {
		wrong         bool
		name, problem string
	}{
		{s.RedisURL == "" && s.origins["redis_prefix"].Given(), "redis_prefix", "it means nothing without redis_url"},
		{s.RedisURL == "" && s.origins["redis_confirm"].Given(), "redis_confirm", "it means nothing without redis_url"},
		{s.RedisURL == "" && s.origins["redis_timeout"].Given(), "redis_timeout", "it means nothing without redis_url"},
		{s.RedisURL == "" && s.origins["on_store_outage"].Given(), "on_store_outage", "it means nothing without redis_url"},
		{s.RedisConfirm > 0 && s.GoesOn(), "on_store_outage", "it cannot be continue beside redis_confirm, under which no mail is sent that replicas have not confirmed: set refuse, or redis_confirm to 0"},
		{s.SMTPRate > 0 && s.SMTPRate < relay.SlowestPace, "smtp_rate", "it must be 0, for as they come, or at least 0.000001"},
		{s.SMTPRate == 0 && s.origins["smtp_queue"].Given(), "smtp_queue", "it means nothing without smtp_rate"},
		{s.forReal() && s.APIKeys.known(), "api_keys", "a secret in it is " + ofTrial},
		{s.forReal() && s.AdminKeys.known(), "admin_keys", "a secret in it is " + ofTrial},
		{s.forReal() && s.Secret.known(), "secret", "it is " + ofTrial},
		{s.APIKeys.share(s.AdminKeys), "admin_keys", "a secret in it is one of api_keys too, and would open everything"},
		{s.DrainDelay > 0 && s.DrainDelay >= s.ShutdownGrace, "drain_delay", "it must be shorter than shutdown_grace, which it is a part of"},
		{s.CodeLife%1e6 != 0, "code_life", "it must be whole milliseconds"},
		{strings.Contains(s.URL, "@"), "url", "it must be without a user and a password, which it would be shown with; the key is the first of admin_keys"},
	} {
		if rule.wrong {
			return s.Complain(rule.name, rule.problem)
		}
	}
	return nil
}

// ForSending is what only those who send mail need to have been given.
func (s *Settings) ForSending() error {
	if len(s.SMTPURL) == 0 {
		return s.Complain("smtp_url", "it must be set: the relay that mail goes to, such as smtps://user:password@host")
	}
	if s.From.Address.IsZero() {
		return s.Complain("from", "it must be set: the sender, such as Acme <no-reply@acme.example>")
	}
	return nil
}

// ForServing is what those who serve need: keys where others than this machine can ask, all
// to send, and a secret that is not this process's alone where others open what it seals.
func (s *Settings) ForServing() error {
	if !s.Loopback() && s.APIKeys == "" {
		return s.Complain("api_keys", "without keys it serves on loopback only; set "+prefix+"API_KEYS to listen on "+s.Listen)
	}
	if s.APIKeys == "" && len(s.TrustedProxies) > 0 {
		return s.Complain("api_keys", "without keys it serves this machine alone, and a proxy speaks for others; set "+prefix+"API_KEYS beside "+prefix+"TRUSTED_PROXIES")
	}
	if err := s.ForSending(); err != nil {
		return err
	}
	if s.RedisURL != "" && s.Secret == "" {
		return s.Complain("secret", "it must be set where the history is in redis, to the same for all processes; make one, as with: openssl rand -hex 32")
	}
	return nil
}

// GoesOn reports whether the node keeps a history of its own beside that in Redis, to go
// on with while Redis is away.
func (s *Settings) GoesOn() bool { return s.RedisURL != "" && s.OnStoreOutage == "continue" }

// KeepsHistory reports whether the node keeps a history in its data directory: the only one, or
// beside Redis one of its own, where that was asked for.
func (s *Settings) KeepsHistory() bool {
	return s.RedisURL == "" || s.GoesOn() && s.origins["data_dir"].Given()
}

// Unused names what was given and has no effect beside the rest: memory and disk of one
// process where the history is in Redis alone, or the drive where none is used.
func (s *Settings) Unused() (places []string) {
	unused := []string{"data_dir", "sync", "cache_mailboxes", "cache_bytes"}
	switch {
	case s.KeepsHistory():
		return nil
	case s.GoesOn():
		unused = []string{"sync"}
	}
	for _, name := range unused {
		if origin := s.origins[name]; origin.Given() {
			places = append(places, origin.Place)
		}
	}
	return places
}

// Loopback reports whether only this machine can reach the address to listen on.
func (s *Settings) Loopback() bool {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Complain is an error that names a setting as it was given, or as it could be.
func (s *Settings) Complain(name, problem string) error {
	place := envName(name)
	if origin := s.origins[name]; origin.Given() {
		place = origin.Place
	}
	return &Error{place, ownWords(problem)}
}

// checkRanges applies the validate tags.
func (s *Settings) checkRanges() error {
	check := validator.New(validator.WithRequiredStructEnabled())
	check.RegisterTagNameFunc(func(field reflect.StructField) string { return field.Tag.Get("name") })
	if err := errors.Join(check.RegisterValidation("listen", isListenAddress), check.RegisterValidation("port", hasPort)); err != nil {
		return fmt.Errorf("checking settings: %w", err)
	}
	var wrong validator.ValidationErrors
	err := check.Struct(s)
	if errors.As(err, &wrong) {
		return s.Complain(wrong[0].Field(), sentence(wrong[0].Tag(), wrong[0].Param()))
	}
	return err
}

// sentence says what a validate tag asks for.
func sentence(tag, param string) string {
	switch tag {
	case "gte":
		return "it must be at least " + param
	case "lte":
		return "it must be at most " + param
	case "oneof":
		return "it must be one of: " + strings.Join(strings.Fields(param), ", ")
	case "listen":
		return "it must be host:port, such as 127.0.0.1:8080 or :8080"
	case "port":
		return "the port must be a number from 0 to 65535"
	case "http_url":
		return "it must be a URL such as http://127.0.0.1:8080"
	default:
		return "it must be set"
	}
}

// isListenAddress takes host:port with a host that may be empty.
func isListenAddress(field validator.FieldLevel) bool {
	host, _, err := net.SplitHostPort(field.Field().String())
	return err == nil && !strings.ContainsAny(host, " /@")
}

// hasPort takes a port in figures.
func hasPort(field validator.FieldLevel) bool {
	_, port, _ := net.SplitHostPort(field.Field().String())
	n, _ := strconv.ParseUint(port, 10, 16)
	return strconv.FormatUint(n, 10) == port
}
