package trace

import (
	"context"
	"testing"
	"time"
)

type aKey struct{}

// Where no collector is set, nothing is allocated.
func TestSpans_Off_AllocateNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), aKey{}, "a value"))
	defer cancel()
	var off *Tracer
	none := func(string) string { return "" }
	now := time.Now()
	if n := testing.AllocsPerRun(1000, func() {
		ctx := off.Begin(ctx, "send-code", now, none)
		part, span := Start(ctx, "relay")
		Event(part, "RCPT", 250)
		span.Set("relay", "relay.example:25")
		span.End("sent")
		Of(ctx).End(Of(ctx).TraceID())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	off.Close(ctx)
}
