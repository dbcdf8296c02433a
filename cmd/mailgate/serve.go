package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mailgate/mailgate/cache"
)

func serveCommand() command {
	return command{
		name:    "serve",
		summary: "run the service",
		teaches: `
Serves the API at MAILGATE_LISTEN and, where that is set, its figures and health checks
at MAILGATE_OPS_LISTEN, keeps the history in MAILGATE_DATA_DIR or in Redis,
and hands mail to the relay of MAILGATE_SMTP_URL. It needs that setting and
MAILGATE_FROM; everything else has a default. See mailgate help for all settings, and
mailgate check-config to try them out.

Processes that share a history in Redis need one MAILGATE_SECRET; a single one makes its
own and keeps it beside its history.

Without MAILGATE_API_KEYS it asks for no key, and so serves this machine alone.

On SIGHUP it reads the rules file and the templates again, whole or not at all: a mistake
in them is a line in the log and leaves everything as it was. Requests in flight finish by
what they began with. What was counted still counts under another limit or burst. Under
another algorithm, another window or by something else a rule begins anew, or goes on where
it was when it last counted so, but for a sliding-log, which goes on under any window; the
log then has rules_begun_anew. All other settings, such as MAILGATE_TIERS, need a restart.

Of several processes each reads its own file. The log at start and at each SIGHUP, and
/metrics, have a rules_digest, which is the same where the rules are. Where they share a
history in Redis, the log at start and /metrics have a secret_digest, too, which has to be
the same, and so has the log's redis_prefix.

On SIGTERM it stops taking requests, lets those in flight finish for up to
MAILGATE_SHUTDOWN_GRACE, closes its stores and exits with 0. A second SIGTERM ends it at
once. It logs to stderr, a line an event.`,
		run: serve,
	}
}

func serve(ctx context.Context, c call) error {
	s, _, err := c.settings()
	if err != nil {
		return err
	}
	if err := s.ForServing(); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // whoever read the log is gone: that is no reason to go as well
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	p, err := build(ctx, s, c.stderr, nil)
	if err != nil {
		return err
	}
	at, err := listenAt(s)
	if err != nil {
		return errors.Join(err, p.abandon(ctx))
	}
	p.announce(at)
	return p.serve(ctx, at, again)
}

// announce says what runs, where, and what an operator should know about it.
func (p *program) announce(at listeners) {
	s, log := p.settings, p.log
	place := "disk"
	switch {
	case s.RedisURL != "":
		place = "redis"
	case s.DataDir == cache.Memory:
		place = "memory"
	}
	serving := []any{"address", at.main.Addr().String(), "version", currentVersion(), "history", place,
		"tiers", p.content.rules.Mailbox().Tiers.String(), "rules", len(p.content.rules.Rules), "actions", len(p.content.rules.Actions),
		"rules_digest", p.content.rules.Digest()}
	if at.ops != nil {
		serving = append(serving, "ops_address", at.ops.Addr().String())
	}
	if p.digest != "" {
		serving = append(serving, "secret_digest", p.digest, "redis_prefix", string(s.RedisPrefix))
	}
	if dir := s.DataDir; s.KeepsHistory() && dir != cache.Memory {
		serving = append(serving, "data_dir", absolute(dir))
	}
	log.Info("serving", serving...)
	p.warnOfRules()
	p.warnOfFiles()
	if twice := keysTwice(s); twice != nil {
		log.Warn("keys have two secrets: take the old ones out when nobody uses them any more", "keys", strings.Join(twice, ", "))
	}
	if dir := s.DataDir; s.KeepsHistory() && dir != cache.Memory && openToOthers(dir) {
		log.Warn("others on this machine may write to the data directory, and so decide what is on record: chmod 700 it")
	}
	if s.Secret == "" && place == "memory" {
		log.Info("a secret was made that ends with this process, as nothing is kept on disk")
	}
	if s.APIKeys == "" {
		log.Warn("no api keys are set: no key is asked for, and this machine alone is served")
	}
	if s.APIKeys != "" && s.AdminKeys == "" {
		log.Warn("no admin keys are set: the operators' paths are closed")
	}
	for _, unused := range s.Unused() {
		log.Warn("a setting has no effect, because the history is in redis", "setting", unused)
	}
}
