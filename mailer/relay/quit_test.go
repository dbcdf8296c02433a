package relay

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
)

// A relay that does not read its QUIT delays no send that needs a connection: each way of ending one
// leaves the pool free meanwhile.
func TestPool_QuitIsNotRead_PoolIsFree(t *testing.T) {
	for name, end := range map[string]func(*pool, *conn){
		"idle for too long": func(p *pool, c *conn) { p.expire(c) },
		"closed":            func(p *pool, _ *conn) { p.close() },
		"has carried as many emails as it may": func(p *pool, c *conn) {
			p.idle, c.most, c.mails = nil, 1, 1
			p.release(c, "acme.example")
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			c := &conn{socket: ours, stream: ours, idle: time.NewTimer(time.Hour)}
			p := &pool{options: Options{}.withDefaults(), inUse: map[string]int{"acme.example": 1}, idle: []*conn{c}, open: 1}
			ended := make(chan struct{})
			go func() {
				end(p, c)
				close(ended)
			}()
			must.Get(io.ReadFull(theirs, make([]byte, 1)))(t)
			p.counts() // waits for the lock
			rest := make([]byte, len("UIT\r\n"))
			if _, err := io.ReadFull(theirs, rest); err != nil {
				t.Errorf("the pool was locked until QUIT had timed out: %v", err)
			}
			<-ended
		})
	}
}
