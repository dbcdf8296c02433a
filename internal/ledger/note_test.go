package ledger

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/recent"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
)

type lines struct{ strings.Builder }

func (l *lines) Enabled(slog.Level) bool      { return true }
func (l *lines) Line(_ *Outcome, line []byte) { l.Write(line) }

// A relay may quote the email that it takes or refuses: the code in it, of any length, and the address are in no line and no entry.
func TestNote_ReplyQuotesCode_IsNotKept(t *testing.T) {
	to := must.Get(address.Parse("alice@example.com", address.Identity{}))(t)
	for _, code := range []string{"482913", "7Kq2", "305805112233"} {
		log := &lines{}
		l := New(Options{Log: log, Notes: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: func() int64 { return 0 }})
		for _, what := range []*What{Sent, Rejected, Deferred} {
			l.Note(&Outcome{What: what, Door: HTTP, Mailbox: to, Code: code,
				Reply: &relay.Reply{Code: 250, Enhanced: "2.0.0", Message: "queued \"" + code + " is your code\" for <alice@example.com>"}})
		}
		entries := recent.Newest(l.Recent.All(0, l.Recent.Next(), recent.Filter{}), 10)
		if len(entries) != 3 {
			t.Fatalf("%d entries", len(entries))
		}
		for _, entry := range entries {
			if text := string(entry); !strings.Contains(text, "queued") || strings.Contains(text, code) || strings.Contains(text, "alice@") {
				t.Errorf("kept: %s", text)
			}
		}
		if strings.Contains(log.String(), code) || strings.Contains(log.String(), "alice@") {
			t.Errorf("logged: %s", log)
		}
	}
}
