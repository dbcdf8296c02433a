package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/nodes"
)

// newNodes returns this node among those that share its Redis; nil without one.
func (p *program) newNodes() *nodes.Nodes {
	if p.store.redis == nil {
		return nil
	}
	return nodes.New(nodes.Options{
		Client: p.store.redis, Prefix: p.config.RedisPrefix, Name: nodeName(p.config),
		Own: &p.ledger.Recent, Audited: &p.ledger.Audited, Now: now, Metrics: p.metrics,
	})
}

// nodeName is the same after a restart, and differs from those of other nodes, also of this machine.
func nodeName(c *config.Config) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	_, port, _ := net.SplitHostPort(c.Listen)
	if port == "0" {
		port = fmt.Sprint(os.Getpid())
	}
	return host + ":" + port
}

const (
	tellInterval = time.Second
	figuresEvery = 5 // of them: a node asks its stores for its figures
)

// startTelling tells other nodes every second what this one does, and the rest at endTelling.
func (p *program) startTelling() {
	if p.nodes == nil {
		return
	}
	var life context.Context
	life, p.endTelling = context.WithCancel(context.Background())
	p.telling.Go(func() {
		ticks := time.NewTicker(tellInterval)
		defer ticks.Stop()
		continued := false
		for n, last := 0, false; !last; n++ {
			select {
			case <-ticks.C:
			case <-life.Done():
				last = true
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(life), p.config.RedisTimeout)
			continued = continued || p.server.Continue(ctx) == nil // before the figures are written over
			var figures []byte
			if continued && (n%figuresEvery == 0 || last) {
				figures = p.server.Figures()
			}
			_ = p.nodes.Tell(ctx, figures) // the next one tells it, and others log that Redis is away
			cancel()
		}
	})
}
