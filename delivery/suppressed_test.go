package delivery

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/suppression"
)

// critical makes the template of a send critical.
func (q *Send) critical(t *testing.T) {
	t.Helper()
	own := fstest.MapFS{"code/template.yaml": {Data: []byte("critical: true")}}
	q.Composer = must.Get(message.NewComposer(must.Get(message.ParseSender("no-reply@acme.example"))(t), must.Get(message.LoadTemplates(own, "en"))(t)))(t)
}

// outcomeOf sends an email by a door.
func (b *bench) outcomeOf(q Send, door string) error {
	if door == "http" {
		_, err := b.Attempt(context.Background(), "r").Send(q)
		return err
	}
	mail := b.Attempt(context.Background(), "r")
	if _, err := mail.Charge(Send{Rules: q.Rules, Mail: message.Request{To: q.Mail.To}, Traits: q.Traits}); err != nil {
		return err
	}
	return mail.HandOver(context.Background(), relay.Envelope{By: time.Now().Add(time.Minute)}, []byte("text"))
}

// Each reason refuses what it says, charges nothing, and does so at each door.
func TestSend_Suppressed_ByReasonAndKind(t *testing.T) {
	for _, c := range []struct {
		reason           suppression.Reason
		door             string
		critical, passes bool
	}{
		{suppression.Manual, "http", false, false},
		{suppression.Manual, "http", true, false},
		{suppression.Manual, "smtp", false, false},
		{suppression.Complaint, "http", true, false},
		{suppression.Complaint, "smtp", false, false},
		{suppression.NotMe, "http", false, false},
		{suppression.NotMe, "http", true, true},
		{suppression.NotMe, "smtp", false, true},
		{suppression.HardBounce, "http", false, false},
		{suppression.HardBounce, "http", true, true},
		{suppression.HardBounce, "smtp", false, true},
	} {
		t.Run(string(c.reason)+" "+c.door, func(t *testing.T) {
			b := newBench(t)
			q, l := b.send()
			if c.critical {
				q.critical(t)
			}
			must.OK(t, b.suppressions.Add(t.Context(), q.Mail.To, c.reason, ""))
			for range 2 { // the second is within the day
				err := b.outcomeOf(q, c.door)
				if e, _ := errors.AsType[*Error](err); (err == nil) != c.passes || err != nil && (e.Kind != Suppressed || e.Suppression.Reason != c.reason) {
					t.Fatalf("the send ends in %v", err)
				}
				c.passes = c.passes && c.reason != suppression.HardBounce
			}
			if used, sent := l.used(t), b.relay.committed; sent == 0 && used != "0 0 0" {
				t.Errorf("%s are charged", used)
			}
		})
	}
}

// What does not leave gives the pass of the day back.
func TestSend_BouncedAndRelayDown_PassReturned(t *testing.T) {
	for _, door := range []string{"http", "smtp"} {
		b := newBench(t)
		q, _ := b.send()
		q.critical(t)
		must.OK(t, b.suppressions.Add(t.Context(), q.Mail.To, suppression.HardBounce, ""))
		b.relay.begin = &relay.Error{Outcome: relay.Unavailable}
		if err := b.outcomeOf(q, door); failure(err).Kind != Unavailable {
			t.Errorf("%s: with the relay down: %v", door, err)
		}
		b.relay.begin = nil
		if err := b.outcomeOf(q, door); err != nil {
			t.Errorf("%s: with the relay back: %v", door, err)
		}
		b.now.Add(86_400_000)
		if err := b.outcomeOf(q, door); err != nil {
			t.Errorf("%s: a day later: %v", door, err)
		}
	}
}
