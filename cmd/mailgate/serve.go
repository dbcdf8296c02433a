package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

type serveCommand struct{}

func (serveCommand) Help() string {
	return `Serves the API at MAILGATE_LISTEN, keeps the history in MAILGATE_DATA_DIR or in Redis, and hands email to the relay of MAILGATE_SMTP_URL. That setting and MAILGATE_FROM are required. mailgate check-config checks all of them.

SIGHUP reads the rules file and the templates again, all or nothing: a mistake in them is a line in the log and changes nothing. Requests in flight finish under the old ones. A rule with another limit or burst keeps its counts; with another algorithm, window or "by" it starts from zero, and the log says so (rules_begun_anew). All other settings need a restart.

Processes that share a history in Redis need the same MAILGATE_SECRET and MAILGATE_REDIS_PREFIX (secret_digest and redis_prefix in the log), and each reads its own rules file (rules_digest).

SIGTERM stops accepting requests, lets those in flight finish for up to MAILGATE_SHUTDOWN_GRACE, and exits with 0. A second SIGTERM ends the process at once. The log is on stderr, one line for each event.`
}

func (serveCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	if err := c.ForServing(); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // keep serving when the reader of the log is gone
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	p, err := build(ctx, c, newLogHandler(c, to.err, c.LogLevel), to.err, nil)
	if err != nil {
		return err
	}
	listener, err := listen(c.Listen)
	if err != nil {
		return errors.Join(cannotListen(c, err), p.abandon(ctx))
	}
	p.announce(listener.Addr())
	p.notify("READY=1")
	return p.serve(ctx, listener, reload)
}

// listen listens on IPv4 only if the address is an IPv4 one: the system would take 0.0.0.0
// for IPv6 as well.
func listen(address string) (net.Listener, error) {
	network := "tcp"
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Is4() {
		network = "tcp4"
	}
	return net.Listen(network, address)
}

func cannotListen(c *config.Config, err error) error {
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		err = operation.Err // without the address, which is in the sentence
	}
	return c.Complain("listen", fmt.Sprintf("cannot listen on %s: %v", c.Listen, err))
}

// notify tells systemd, if it started this process, of a change of state.
func (p *program) notify(state string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", socket)
	if err == nil {
		_, err = conn.Write([]byte(state))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		p.log.Warn("systemd was not notified", "state", state, "error", err)
	}
}

// announce logs what runs and where, and what an operator should know about it.
func (p *program) announce(addr net.Addr) {
	c, log := p.config, p.log
	store := "disk"
	switch {
	case c.RedisURL != "":
		store = "redis"
	case c.DataDir == cache.Memory:
		store = "memory"
	}
	serving := []any{"address", addr.String(), "version", currentVersion(), "history", store,
		"tiers", p.content.rules.Mailbox().Tiers.String(), "rules", len(p.content.rules.Rules), "actions", len(p.content.rules.Actions),
		"rules_digest", p.content.rules.Digest()}
	if p.digest != "" {
		serving = append(serving, "secret_digest", p.digest, "redis_prefix", c.RedisPrefix)
	}
	dir := ownDir(c)
	if dir != cache.Memory {
		serving = append(serving, "data_dir", absolute(dir))
	}
	log.Info("serving", serving...)
	p.warn(c.Unknown())
	p.warn(notes(c))
	p.warn(ruleNotes(c, p.content.rules))
	p.warnOfFiles()
	if dir != cache.Memory && openToOthers(dir) {
		log.Warn("other users of this machine may write to the data directory; chmod 700 it", "data_dir", absolute(dir))
	}
	if c.Secret == "" && store == "memory" {
		log.Info("made a secret that ends with this process, as nothing is kept on disk")
	}
	if c.APIKeys == "" {
		log.Warn("no api keys are set: only this machine is served, and no key is asked for")
	} else if c.AdminKeys == "" {
		log.Warn("no admin keys are set: the operator routes are closed")
	}
}
