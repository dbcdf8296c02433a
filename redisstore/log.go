package redisstore

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogTo sends what the Redis library has to say to a log. The library has one voice
// for the whole process and would write to standard error in a form of its own; a
// program calls this once, before Open.
func LogTo(log *slog.Logger) { redis.SetLogger(libraryLog{log}) }

// libraryLog takes the library's lines. It tells of connections that broke and were
// made again, so they are for whoever looks closely.
type libraryLog struct{ to *slog.Logger }

func (l libraryLog) Printf(ctx context.Context, format string, values ...any) {
	if l.to.Enabled(ctx, slog.LevelDebug) {
		l.to.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, values...))
	}
}
