package relay_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/mailer/relay"
)

// TestBarredByAll: no relay wants mail of ours. That is not the recipient's doing, who need
// not pay for it, and the operator hears of it. The relays go on being asked.
func TestBarredByAll(t *testing.T) {
	for _, step := range []fault.Step{fault.RCPT, fault.DATA, fault.Dot} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			barred := fault.Script{At: step, Kind: fault.Barred}
			first, second := play(t, barred), play(t, barred)
			var log lockedBuffer
			o := steady()
			o.Breaker.Failures = 1
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r := newRelays(t, o, plain(first), plain(second))
			for range 3 {
				_, err := send(t.Context(), r, letter())
				checkOutcome(t, err, relay.Unavailable)
				failure, ok := errors.AsType[*relay.Error](err)
				if !ok || failure.Relay != second.Addr() || failure.Reply == nil || failure.Reply.String() != "554 5.7.1" ||
					!strings.HasPrefix(failure.Error(), "relay "+second.Addr()+": mail unavailable at ") {
					t.Errorf("the error is %+v", failure)
				}
			}
			if text := log.String(); strings.Count(text, "level=WARN") != 6 || strings.Contains(text, "secret.example") {
				t.Errorf("the log says\n%s", text)
			}
			for _, server := range []*fault.Server{first, second} {
				if conns := len(server.Received()); conns != 1 {
					t.Errorf("%d connections to one of them, want 1", conns)
				}
				server.Play(fault.Script{})
			}
			if receipt := mustSend(t, r, letter()); receipt.Relay != first.Addr() {
				t.Error("the first relay was left alone")
			}
		})
	}
}

// TestBarredByOne: what the next relay says of the recipient is the answer.
func TestBarredByOne(t *testing.T) {
	for kind, want := range map[fault.Kind]relay.Outcome{
		fault.Permanent: relay.Rejected, fault.Temporary: relay.Unavailable, fault.Silence: relay.Unavailable,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			script := fault.Script{At: fault.RCPT, Kind: kind}
			first, second := play(t, fault.Script{At: fault.RCPT, Kind: fault.Barred}), play(t, script)
			r := newRelays(t, facing(script), plain(first), plain(second))
			_, err := send(t.Context(), r, letter())
			checkOutcome(t, err, want)
			if failure, ok := errors.AsType[*relay.Error](err); !ok || failure.Relay != second.Addr() {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
