package config

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/apikey"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/internal/webhook"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/submission"
	"github.com/mailgate/mailgate/throttle"
)

type (
	// Keys are named secrets: name:secret,name:secret.
	Keys struct {
		apikey.Keys
		first string // the secret of the first
	}
	// Secret is one secret.
	Secret string
	// Secrets are the one that countdowns, codes and log hashes are derived from, and its earlier values.
	Secrets []Secret
	// RedisURL is where Redis is, as package redisx reads it.
	RedisURL string
	// Relays are the relays that email goes to, in the order to try them.
	Relays []relay.URL
	// Bytes is an amount of memory, written 65536, 64KiB, 28MiB or 1GiB.
	Bytes uint64
)

// decoders parse the types of the settings. Their errors do not repeat a secret.
func decoders(public published) []kong.Option {
	return []kong.Option{
		decodeSecret(public, parseKeys), decodeSecret(public, parseSecret), decodeSecret(public, parseSecrets), decodeSecret(public, parseRedisURL),
		decodeSecret(public, parseRelays), decodeSecret(public, hooks.ParseSecrets), decodeSecret(public, webhook.ParseSecrets),
		kong.PostBuild(secretFiles),
		decode(parseBytes), decode(throttle.ParsePolicy), decode(message.ParseSender),
		decode(each[[]netip.Prefix](network.Parse)), decode(each[Doors](parseDoor)), decode(each[submission.Senders](parseSender)), decode(each[Names](parseName)),
		decode(orElse(strconv.Atoi, "must be a whole number")),
		decode(orElse(func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }, "must be a number")),
		decode(orElse(time.ParseDuration, "must be a duration such as 400ms, 60s or 1h30m")),
	}
}

func decode[T any](parse func(string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), mapper[T]{parse, nil})
}

// decodeSecret parses a type whose settings can be in files of their own.
func decodeSecret[T any](public published, parse func(string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[T](), mapper[T]{parse, public})
}

// A mapper parses the settings of one type.
type mapper[T any] struct {
	parse  func(string) (T, error)
	public published // of a secret
}

func (m mapper[T]) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if ctx.Scan.PopValueInto("value", &text) != nil || text == "" {
		return errors.New("needs a value")
	}
	if m.public != nil && anyoneCanRead.MatchString(text) {
		m.public[ctx.Value.Name] = true
	}
	value, err := m.parse(text)
	if err == nil {
		target.Set(reflect.ValueOf(value))
	}
	return err
}

func (m mapper[T]) secret() bool { return m.public != nil }

// published are the names of settings with a secret that is in an example or in docker-compose.yml.
type published map[string]bool

var anyoneCanRead = regexp.MustCompile(`(?i)change-me|-not-secret`)

// secretFiles adds to each flag of a secret one for the path of a file with the secret in it.
func secretFiles(k *kong.Kong) error {
	for _, flag := range k.Model.Flags {
		if is, ok := flag.Mapper.(interface{ secret() bool }); ok && is.secret() {
			path := &kong.Flag{Hidden: true, Value: &kong.Value{
				Name: flag.Name + "-file", Tag: &kong.Tag{}, Target: reflect.New(reflect.TypeFor[string]()).Elem(),
				Mapper: kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
					return ctx.Scan.PopValueInto("path", target.Addr().Interface())
				}),
			}}
			path.Value.Flag = path
			k.Model.Flags = append(k.Model.Flags, path)
		}
	}
	return nil
}

// each parses values with commas between them.
func each[L ~[]T, T any](parse func(string) (T, error)) func(string) (L, error) {
	return func(text string) (all L, err error) {
		for one := range strings.SplitSeq(text, ",") {
			value, err := parse(strings.TrimSpace(one))
			if err != nil {
				return nil, err
			}
			all = append(all, value)
		}
		return all, nil
	}
}

// orElse replaces the error of a parser, which repeats the text.
func orElse[T any](parse func(string) (T, error), problem string) func(string) (T, error) {
	return func(text string) (value T, err error) {
		if value, err = parse(text); err != nil {
			err = errors.New(problem)
		}
		return value, err
	}
}

func parseBytes(text string) (Bytes, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil {
		err = errors.New("must be a number of bytes, such as 65536 or 28MiB")
	}
	return Bytes(n), err
}

func parseRedisURL(text string) (RedisURL, error) { return RedisURL(text), redisx.CheckURL(text) }

// nextRelay is where the next relay begins: a password may hold a comma.
var nextRelay = regexp.MustCompile(`,\s*smtp`)

func parseRelays(text string) (all Relays, err error) {
	for one := range strings.SplitSeq(nextRelay.ReplaceAllString(text, "\nsmtp"), "\n") {
		url, err := relay.ParseURL(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		all = append(all, url)
	}
	return all, nil
}

// parseKeys refuses keys that can be guessed. Its errors name a key by its position.
func parseKeys(text string) (keys Keys, err error) {
	keys.Keys, err = apikey.Parse(text, func(secret string) string {
		keys.first = cmp.Or(keys.first, secret)
		if _, err := parseSecret(secret); err != nil {
			return "has a secret that " + err.Error()
		}
		return ""
	})
	if err == nil && keys.IsZero() {
		err = errors.New("has no key; write name:secret")
	}
	return keys, err
}

func parseSecret(text string) (Secret, error) {
	if len(text) < secret.MinLength {
		return "", fmt.Errorf("has fewer than %d characters; make one: openssl rand -hex 16", secret.MinLength)
	}
	return Secret(text), nil
}

func parseSecrets(text string) (all Secrets, err error) {
	for one := range strings.SplitSeq(text, "|") {
		value, err := parseSecret(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

// MakeKey returns a key with a secret made for this run.
func MakeKey(name string) Keys {
	keys, _ := parseKeys(name + ":" + rand.Text()) // which cannot be guessed
	return keys
}

// First returns the secret of the first key, or empty.
func (k Keys) First() string { return k.first }

const mask = "***"

func (k Keys) String() string {
	if k.IsZero() {
		return ""
	}
	return strings.Join(k.Names(), ":"+mask+",") + ":" + mask
}

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

func (s Secrets) String() string { return join(s, Secret.String, "|") }

// String masks what may be a secret: user and password.
func (u RedisURL) String() string {
	scheme, rest, found := strings.Cut(string(u), "://")
	if !found {
		return ""
	}
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = mask + "@" + rest[at+1:]
	}
	before := "?"
	for setting := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' }) {
		if name, _, _ := strings.Cut(setting, "="); !slices.Contains([]string{"addr", "ca", "master_name"}, name) {
			setting = name + "=" + mask
		}
		rest += before + setting
		before = "&"
	}
	return scheme + "://" + rest
}

func (r Relays) String() string {
	return join(r, relay.URL.String, ",")
}

func (b Bytes) String() string { return strings.ReplaceAll(humanize.IBytes(uint64(b)), " ", "") }

// A Setting is one setting in force, as it may be shown.
type Setting struct {
	Name  string // as in the file: smtp_url
	Value string // secrets are masked
	From  string // "default", "environment MAILGATE_SMTP_URL"
}

// Settings lists all settings in their order.
func (c *Config) Settings() (all []Setting) {
	whole := reflect.ValueOf(c).Elem()
	for i := range whole.NumField() {
		tag := whole.Type().Field(i).Tag
		name := tag.Get("name")
		if tag.Get("group") == "" {
			continue
		}
		setting := Setting{strings.ReplaceAll(name, "-", "_"), show(whole.Field(i).Interface()), "default"}
		if given := c.given[name]; given.where != "" {
			setting.From = given.source + " " + given.where
		} else if name == "data-dir" && !c.UsesDataDir() && c.EventsURL == "" {
			setting.Value = ""
		}
		all = append(all, setting)
	}
	return all
}

func show(value any) string {
	switch v := value.(type) {
	case message.Sender:
		if v.Name == "" {
			return v.Address.String()
		}
		return (&mail.Address{Name: v.Name, Address: v.Address.String()}).String()
	case time.Duration:
		return Short(v)
	case []netip.Prefix:
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(v), "[]"), " ", ",")
	}
	return fmt.Sprint(value)
}

// Short writes a duration without the zeros at its end: 10m, not 10m0s.
func Short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
