package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/network"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/secret"
	"github.com/mailgate/mailgate/throttle"
)

// Keys are names and secrets, name:secret,name:secret.
type Keys string

// Names are what the keys are called, in order.
func (k Keys) Names() []string {
	names, _ := k.split()
	return names
}

// split are the names and the secrets, in order.
func (k Keys) split() (names, secrets []string) {
	for pair := range strings.SplitSeq(string(k), ",") {
		if name, secret, ok := strings.Cut(strings.TrimSpace(pair), ":"); ok {
			names, secrets = append(names, name), append(secrets, secret)
		}
	}
	return names, secrets
}

// First is the secret of the first key, or empty.
func (k Keys) First() string {
	if _, secrets := k.split(); len(secrets) > 0 {
		return secrets[0]
	}
	return ""
}

// Twice are the names that stand twice, as they do while a key's secret is changed.
func (k Keys) Twice() (twice []string) {
	names := k.Names()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			twice = append(twice, name)
		}
	}
	return twice
}

// share reports whether a secret is in both.
func (k Keys) share(other Keys) bool {
	_, mine := k.split()
	_, theirs := other.split()
	return slices.ContainsFunc(mine, func(secret string) bool { return slices.Contains(theirs, secret) })
}

// A Secret is what everything is derived from that has to be hopeless to guess.
type Secret string

// RedisURL is where Redis is, as package redisstore reads it.
type RedisURL string

// KeyPrefix is what all keys in Redis have before their first colon. It has none itself: under
// "a:b" they would be those that "a" has for what is called b.
type KeyPrefix string

// Relays are where mail goes, in the order to try them.
type Relays []relay.URL

// Bytes is an amount of memory, written 65536, 64KiB, 28MiB or 1GiB.
type Bytes int64

// read turns text into the value of a field. Errors do not repeat the text, which may
// be a secret.
func read(into any, text string) (err error) {
	switch v := into.(type) {
	case *string:
		*v = text
	case *bool:
		*v, err = readSwitch(text)
	case *int:
		*v, err = strconv.Atoi(text)
		err = orElse(err, "it must be a whole number")
	case *int64:
		*v, err = strconv.ParseInt(text, 10, 64)
		err = orElse(err, "it must be a whole number")
	case *float64:
		*v, err = strconv.ParseFloat(text, 64)
		err = orElse(err, "it must be a number")
	case *time.Duration:
		*v, err = time.ParseDuration(text)
		err = orElse(err, "it must be a length of time, such as 400ms, 60s or 1h30m")
	case *slog.Level:
		err = readLevel(v, text)
	case *Bytes:
		*v, err = readBytes(text)
	case *[]netip.Prefix:
		*v, err = readPrefixes(text)
	case *Relays:
		*v, err = readRelays(text)
	case *RedisURL:
		*v = RedisURL(text)
		err = redisstore.CheckURL(text)
	case *KeyPrefix:
		*v, err = KeyPrefix(text), throttle.CheckName(text)
	case *Keys:
		*v, err = readKeys(text)
	case *Secret:
		*v, err = Secret(text), guessable(text)
	case *message.Sender:
		*v, err = message.ParseSender(text)
	case *throttle.Policy:
		*v, err = throttle.ParsePolicy(text)
	default:
		err = fmt.Errorf("settings of type %T cannot be read", into)
	}
	return err
}

// orElse puts a sentence of ours in the place of a library's, which repeats the text.
func orElse(err error, sentence string) error {
	if err == nil {
		return nil
	}
	return errors.New(sentence)
}

func readSwitch(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("it must be true or false")
}

func readLevel(into *slog.Level, text string) error {
	switch text {
	case "debug", "info", "warn", "error":
		return into.UnmarshalText([]byte(text))
	}
	return errors.New("it must be debug, info, warn or error")
}

func readBytes(text string) (Bytes, error) {
	number, shift := text, 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if before, ok := strings.CutSuffix(text, unit); ok {
			number, shift = before, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > 1<<40>>shift {
		return 0, errors.New("it must be a number of bytes up to 1024GiB, such as 65536 or 28MiB")
	}
	return Bytes(n << shift), nil
}

func readPrefixes(text string) (all []netip.Prefix, err error) {
	for one := range strings.SplitSeq(text, ",") {
		prefix, err := network.Parse(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		all = append(all, prefix)
	}
	return all, nil
}

// readRelays splits where the next relay's scheme begins: a password may hold a comma.
func readRelays(text string) (all Relays, err error) {
	for text != "" {
		one := text
		for at := range len(text) {
			if text[at] == ',' && strings.HasPrefix(strings.TrimSpace(text[at+1:]), "smtp") {
				one = text[:at]
				break
			}
		}
		relay, err := relay.ParseURL(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		all = append(all, relay)
		text = strings.TrimPrefix(text[len(one):], ",")
	}
	return all, nil
}

// minSecret is the fewest characters of a secret. A shorter one can be guessed.
const minSecret = secret.MinLength

// placeholder begins every secret in published examples. Whoever has read them knows it.
const placeholder = "change-me"

// readKeys leaves what keys look like to whoever will ask for them, and refuses those
// that a stranger could guess. Like theirs, its errors name a key by its place.
func readKeys(text string) (Keys, error) {
	parsed, err := api.ParseKeys(text)
	if err != nil {
		return "", err
	}
	if parsed.IsZero() {
		return "", errors.New("there is no key in it")
	}
	keys := Keys(text)
	_, secrets := keys.split()
	for i, secret := range secrets {
		switch {
		case strings.HasPrefix(strings.ToLower(secret), placeholder):
			return "", fmt.Errorf("key %d has the secret of an example; make one of your own, as with: openssl rand -hex 16", i+1)
		case len(secret) < minSecret:
			return "", fmt.Errorf("key %d has a secret of fewer than %d characters; make one, as with: openssl rand -hex 16", i+1, minSecret)
		}
	}
	return keys, nil
}

// guessable says why a stranger could guess the secret, as far as one can see.
func guessable(secret string) error {
	switch {
	case strings.HasPrefix(strings.ToLower(secret), placeholder):
		return errors.New("it is the secret of an example; make one of your own, as with: openssl rand -hex 32")
	case len(secret) < minSecret:
		return fmt.Errorf("it has fewer than %d characters; make one, as with: openssl rand -hex 32", minSecret)
	}
	return nil
}
