package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// inbox keeps the newest emails within a count and a number of octets. Emails are kept as they came
// and parsed only when they are requested.
type inbox struct {
	maxCount, maxBytes int

	mu      sync.Mutex
	kept    []envelope // oldest first
	bytes   int
	last    uint64
	arrived chan struct{} // closed at the next arrival; nil without a wait
}

// envelope is an email as it came in.
type envelope struct {
	id         uint64
	from       string
	to         []string
	receivedMS int64
	raw        []byte
}

// add keeps an email. The newest one is kept even when it alone is over the bound.
func (b *inbox) add(e envelope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	e.id = b.last
	b.kept = append(b.kept, e)
	b.bytes += len(e.raw)
	for len(b.kept) > 1 && (len(b.kept) > b.maxCount || b.bytes > b.maxBytes) {
		b.bytes -= len(b.kept[0].raw)
		b.kept[0] = envelope{} // or its memory would be held
		b.kept = b.kept[1:]
	}
	if b.arrived != nil {
		close(b.arrived)
		b.arrived = nil
	}
}

// List returns what is kept, oldest first.
func (b *inbox) List() []Message {
	b.mu.Lock()
	kept := slices.Clone(b.kept)
	b.mu.Unlock()
	messages := make([]Message, len(kept))
	for i, e := range kept {
		messages[i] = read(e)
	}
	return messages
}

// Get returns the email with this id, if it is still kept.
func (b *inbox) Get(id uint64) (Message, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.kept, func(e envelope) bool { return e.id == id }); i >= 0 {
		return read(b.kept[i]), true
	}
	return Message{}, false
}

// Wait returns the newest email to this envelope recipient, or waits for one until ctx ends.
// Letter case does not matter.
func (b *inbox) Wait(ctx context.Context, to string) (Message, error) {
	return b.WaitAfter(ctx, to, 0)
}

// WaitAfter waits as Wait does, for an email whose id is greater than after. An empty recipient
// matches any.
func (b *inbox) WaitAfter(ctx context.Context, to string, after uint64) (Message, error) {
	for {
		found, arrived := b.newest(to, after)
		if arrived == nil {
			return read(found), nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return Message{}, fmt.Errorf("sandbox: wait for email: %w", ctx.Err())
		}
	}
}

// newest finds the newest email to a recipient, or else returns the channel
// that the next arrival closes.
func (b *inbox) newest(to string, after uint64) (envelope, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range slices.Backward(b.kept) {
		if e.id > after && (to == "" || slices.ContainsFunc(e.to, func(have string) bool { return strings.EqualFold(have, to) })) {
			return e, nil
		}
	}
	if b.arrived == nil {
		b.arrived = make(chan struct{})
	}
	return envelope{}, b.arrived
}
