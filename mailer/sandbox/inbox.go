package sandbox

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// inbox keeps the newest mails within a count and a number of octets.
// Mails are kept as they came and read only when they are asked for.
type inbox struct {
	maxCount, maxBytes int

	mu      sync.Mutex
	kept    []envelope // oldest first
	bytes   int
	last    uint64
	arrived chan struct{} // closed at the next arrival; nil without a wait
}

// envelope is a mail as it came in.
type envelope struct {
	id         uint64
	from       string
	to         []string
	receivedMS int64
	raw        []byte
}

func newInbox(maxCount, maxBytes int) *inbox {
	return &inbox{maxCount: maxCount, maxBytes: maxBytes}
}

// add keeps a mail and returns its id. The newest mail is kept even when it
// alone is over the bound.
func (b *inbox) add(e envelope) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	e.id = b.last
	b.kept = append(b.kept, e)
	b.bytes += len(e.raw)
	drop := 0
	for len(b.kept)-drop > 1 && (len(b.kept)-drop > b.maxCount || b.bytes > b.maxBytes) {
		b.bytes -= len(b.kept[drop].raw)
		b.kept[drop] = envelope{}
		drop++
	}
	b.kept = b.kept[drop:]
	if b.arrived != nil {
		close(b.arrived)
		b.arrived = nil
	}
	return e.id
}

func (b *inbox) list() []Message {
	b.mu.Lock()
	kept := slices.Clone(b.kept)
	b.mu.Unlock()
	messages := make([]Message, len(kept))
	for i, e := range kept {
		messages[i] = read(e)
	}
	return messages
}

func (b *inbox) get(id uint64) (Message, bool) {
	b.mu.Lock()
	i := slices.IndexFunc(b.kept, func(e envelope) bool { return e.id == id })
	var found envelope
	if i >= 0 {
		found = b.kept[i]
	}
	b.mu.Unlock()
	if i < 0 {
		return Message{}, false
	}
	return read(found), true
}

func (b *inbox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept, b.bytes = nil, 0
}

func (b *inbox) wait(ctx context.Context, to string, after uint64) (Message, error) {
	for {
		found, arrived := b.newest(to, after)
		if arrived == nil {
			return read(found), nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}

// newest finds the newest mail to a recipient, or else returns the channel
// that the next arrival closes.
func (b *inbox) newest(to string, after uint64) (envelope, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range slices.Backward(b.kept) {
		if e.id > after && (to == "" || e.sentTo(to)) {
			return e, nil
		}
	}
	if b.arrived == nil {
		b.arrived = make(chan struct{})
	}
	return envelope{}, b.arrived
}

func (e envelope) sentTo(to string) bool {
	return slices.ContainsFunc(e.to, func(have string) bool { return strings.EqualFold(have, to) })
}
