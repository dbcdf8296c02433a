package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/hooks"
)

type serveCommand struct{}

func (serveCommand) Help() string {
	return `Serves the API at MAILGATE_LISTEN and, if that is set, metrics and health checks at MAILGATE_OPS_LISTEN, keeps records in MAILGATE_DATA_DIR or in Redis, and hands email to the relay of MAILGATE_SMTP_URL. That setting and MAILGATE_FROM are required. mailgate check-config checks all of them.

SIGHUP reads the rules file and the templates again, all or nothing: a mistake in them is a line in the log and changes nothing. Requests in flight finish under the old ones. A rule with another limit or burst keeps its counts. With another algorithm or "by" it starts from zero, and unless it is a sliding-log also with another window; the log says so (rules_restarted). All other settings need a restart.

Nodes that share records in Redis need the same MAILGATE_SECRET and MAILGATE_REDIS_PREFIX (secret_digest and redis_prefix in the log), and each reads its own rules file (rules_digest).

SIGTERM stops accepting requests, lets those in flight finish, and exits with 0. After MAILGATE_SHUTDOWN_GRACE it exits with 1, whatever is in flight; the last 5 seconds of it, or half if that is less, are for refunds and closing. A second SIGTERM ends the process at once. The log is on stderr, one line for each event.`
}

func (serveCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	if err := c.ForServing(); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // keep serving when the reader of the log is gone
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	out := newLogOutput(to.err)
	defer out.close()
	p, err := build(ctx, c, newLogging(c, out))
	if err != nil {
		return err
	}
	var at listeners
	defer at.close()
	if err := at.open(c); err != nil {
		return errors.Join(err, p.close(time.Now().Add(quitTimeout)))
	}
	p.announce(at)
	p.notify("READY=1")
	return p.serve(ctx, at, reload)
}

// serve answers requests until ctx ends or a listener fails, which is an error. Each signal from
// reload reads the content again.
func (p *program) serve(ctx context.Context, at listeners, reload <-chan os.Signal) error {
	life, end := context.WithCancel(context.Background())
	p.endTasks = end
	p.tasks.Go(func() { p.store.check(life) })
	p.tasks.Go(func() { p.tell(life) })
	served := make(chan error, 2+len(at.doors))
	go func() { served <- p.server.Serve(at.main) }()
	if at.ops != nil {
		go func() { served <- p.server.ServeOps(at.ops) }()
	}
	for _, door := range at.doors {
		go func() {
			if err := p.door.Serve(door.Listener, door.Private(), door.Implicit); err != nil {
				served <- err
			}
		}()
	}
	for {
		select {
		case err := <-served:
			p.log.Error("the listener failed", "error", err)
			return errors.Join(fmt.Errorf("serving: %w", err), p.drain(ctx))
		case <-reload:
			p.reload()
		case <-ctx.Done():
			return p.drain(ctx)
		}
	}
}

// drain lets the requests in flight finish and closes everything. The grace is the end of it: past that
// drain returns, whatever hangs.
func (p *program) drain(ctx context.Context) error {
	grace := p.config.ShutdownGrace
	p.notify("STOPPING=1")
	p.log.Info("draining", "grace", grace.String())
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.shutdown(within) }()
	select {
	case err := <-ended:
		p.log.Info("stopped")
		return err
	case <-within.Done():
		return fmt.Errorf("the shutdown did not finish within %s: what was still open is cut off", grace)
	}
}

// closing is the part of the grace in which requests that were cut off are refunded, and what is open is
// closed.
const closing = 5 * time.Second

// shutdown drains all doors at the same time, once load balancers have noticed, refunds what does not leave, and closes
// what is open.
func (p *program) shutdown(within context.Context) error {
	end, _ := within.Deadline()
	ctx, cancel := context.WithDeadline(within, end.Add(-min(closing, p.config.ShutdownGrace/2)))
	defer cancel()
	p.server.Drain()
	select {
	case <-time.After(p.config.DrainDelay):
	case <-ctx.Done():
	}
	p.delivery.Drain(ctx)
	var cutOff error // at the SMTP door
	var ended sync.WaitGroup
	if p.door != nil {
		ended.Go(func() { cutOff = p.door.Shutdown(ctx) })
	}
	err := p.server.Shutdown(ctx)
	ended.Wait()
	if err = errors.Join(err, cutOff); err != nil {
		err = fmt.Errorf("requests were cut off, as the grace of %s ends: %w", p.config.ShutdownGrace, err)
	}
	p.delivery.Close(ctx)
	p.server.ShutdownOps(ctx)
	return errors.Join(err, p.close(end))
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

// announce logs what runs and where, and what is valid and probably not meant.
func (p *program) announce(at listeners) {
	c, rules, records := p.config, p.content.rules, "disk"
	switch {
	case c.RedisURL != "":
		records = "redis"
	case c.DataDir == config.Memory:
		records = "memory"
	}
	serving := []any{"address", at.main.Addr().String(), "version", currentVersion(), "records", records,
		"requests_per_key", api.RequestsPerKey(maxConnections(c)), "tiers", rules.Mailbox().Limiter.Algorithm.String(), "rules", len(rules.Rules), "actions", len(rules.Actions), "rules_digest", rules.Digest()}
	if at.ops != nil {
		serving = append(serving, "ops_address", at.ops.Addr().String())
	}
	if len(at.doors) > 0 {
		serving = append(serving, "smtp_address", at.addresses())
	}
	if on := hooks.Names(c.Hooks()); len(on) > 0 {
		serving = append(serving, "hooks", strings.Join(on, ", "))
	}
	if c.RedisURL != "" {
		serving = append(serving, "secret_digest", p.digest, "redis_prefix", c.RedisPrefix, "on_store_outage", c.OnStoreOutage)
	}
	if c.UsesDataDir() && c.DataDir != config.Memory {
		serving = append(serving, "data_dir", absolute(c.DataDir))
	}
	p.log.Info("serving", serving...)
	p.warn(slices.Concat(c.Unknown(), notes(c), ruleNotes(c, rules)))
	if most := maxConnections(c); most < c.MaxConnections {
		p.log.Warn("fewer connections than max_connections: the limit of open files is too low; raise it, such as LimitNOFILE in the unit",
			"max_connections", c.MaxConnections, "connections", most, "requests_per_key", api.RequestsPerKey(most))
	}
	if c.APIKeys.IsZero() {
		p.log.Warn("no API keys are set: mailgate serves only programs on this machine and needs no key")
	} else if c.AdminKeys.IsZero() {
		p.log.Warn("no admin keys are set: the operator routes are disabled")
	}
}

// warn logs what is valid and probably not meant.
func (p *program) warn(notes []string) {
	for _, note := range notes {
		p.log.Warn(note)
	}
}

// reservedFiles are for the history, Redis and the log.
const reservedFiles = 1024

// maxConnections leaves files for the history and the relays, however many connections come. Where files
// are few, half of them are enough.
func maxConnections(c *config.Config) int {
	files := maxFiles()
	others := reservedFiles + c.SMTPMaxConns*len(c.SMTPURL)
	return min(c.MaxConnections, max(files-others, files/2, 1))
}
