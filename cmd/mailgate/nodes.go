package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

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

// tell tells other nodes every second what this one does, and the rest when life ends.
func (p *program) tell(life context.Context) {
	if p.nodes == nil {
		return
	}
	ticks := time.NewTicker(tellInterval)
	defer ticks.Stop()
	continued := false
	for n, last := 0, false; !last; n++ {
		select {
		case <-ticks.C:
		case <-life.Done():
			last = true
		}
		ctx, cancel := context.WithTimeout(context.Background(), p.config.RedisTimeout)
		continued = continued || p.server.Continue(ctx) == nil // before the figures are written over
		var figures []byte
		if continued && (n%figuresEvery == 0 || last) {
			figures = p.server.Figures()
		}
		_ = p.nodes.Tell(ctx, figures) // the next one tells it, and others log that Redis is away
		cancel()
	}
}
