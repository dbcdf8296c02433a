package delivery

import (
	"slices"
	"strings"
	"sync"

	"github.com/mailgate/mailgate/throttle/rules"
)

// past keeps the newest sends that were admitted, for trials of rules.
type past struct {
	mu   sync.Mutex
	all  []PastSend // a ring, once it is full
	next int        // the oldest
}

// PastSend is a send that was admitted, or a right code.
type PastSend struct {
	At       int64
	Send     rules.Send
	Verified bool // a code of its mailbox was right; of its caller's, if it has one
}

const mostPast = 20_000

func (p *past) add(at int64, send rules.Send, verified bool) {
	send.Template, send.Purpose = strings.Clone(send.Template), strings.Clone(send.Purpose) // of a body, which outlives no request
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) < mostPast {
		p.all = append(p.all, PastSend{at, send, verified})
		return
	}
	p.all[p.next] = PastSend{at, send, verified}
	p.next = (p.next + 1) % mostPast
}

// Past returns the newest sends that were admitted after a time, oldest first, with what was verified of them.
func (s *Service) Past(after int64) []PastSend {
	p := &s.past
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Concat(p.all[p.next:], p.all[:p.next])
	return slices.DeleteFunc(all, func(one PastSend) bool { return one.At <= after })
}
