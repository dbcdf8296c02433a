package local

import (
	"context"
	"strings"

	"github.com/mailgate/mailgate/throttle"
)

// Each visits the histories of this limiter's name that have a send inside the longest
// window; see throttle.Surveyor. It reads from the disk what is there, and takes no
// mailbox's lock.
func (l *Limiter) Each(ctx context.Context, visit func(throttle.History) bool) error {
	now := l.now()
	err := l.histories.Each(ctx, now, func(key string, h throttle.History) bool {
		if h = l.live(h, now); len(h) == 0 || !l.owns(key) {
			return true
		}
		return visit(h)
	})
	if err != nil {
		return throttle.Unavailable("going through the histories", err)
	}
	return nil
}

// owns reports whether a key is one of those that part begins.
func (l *Limiter) owns(key string) bool {
	if l.named != "" {
		return strings.HasPrefix(key, l.named)
	}
	return !strings.HasPrefix(key, "\x00") || strings.HasPrefix(key, "\x00\x00")
}
