package submission

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/go-json-experiment/json"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/mailer/address"
)

// record is the newest email of a key to a mailbox, until its reply is known to have arrived. A client that
// lost the reply sends the email again, and gets the same one: no second email leaves.
type record struct {
	Email   string          // its id
	Until   int64           // until when it is open, if nothing ends it before
	Expires int64           // when it is forgotten
	Text    []byte          // a hash, once it may leave
	Reply   *smtp.SMTPError // when it is not open any more
	Read    int64           // when that is known to have arrived; it is then for texts that were under way
	Before  *record         // the one it replaced, which is back if this one does not leave
}

const (
	openLife = 60_000           // of an email that ends without a reply, in milliseconds: more than its times
	textLife = 15 * 60_000      // of a reply: without a Message-ID the same text may soon be another email
	idLife   = 24 * 60 * 60_000 // with one
)

func (r record) open(now int64) bool { return now < r.Until }

// ended reports whether it has a reply that may be lost.
func (r record) ended(now int64) bool { return !r.open(now) && now < r.Expires && r.Read == 0 }

// answers reports whether a text to a recipient who was named at a time has its answer here.
func (r record) answers(text []byte, named, now int64) bool {
	return bytes.Equal(r.Text, text) && (r.open(now) || r.ended(now) || r.Read > named)
}

func parseRecord(text []byte) (r record, err error) {
	if len(text) > 0 {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// Merge merges the record of a node that was alone: the one that is forgotten last stays.
func Merge(shared, own []byte, _ int64) (next []byte, expires int64) {
	s, notShared := parseRecord(shared)
	o, notOwn := parseRecord(own)
	if notShared == nil && (notOwn != nil || s.Expires >= o.Expires) {
		return shared, s.Expires
	}
	return own, o.Expires
}

var errAlone = errors.New("the shared records went away during the email")

// recordTime bounds a step of a record.
const recordTime = 2 * time.Second

// update lets change replace the record of a mailbox, and returns what it was. An email that began with the
// shared records ends with them. Under the context of its mail the change is durable before the text leaves.
func (s *session) update(ctx context.Context, to address.Address, change func(old record, now int64) record) (before record, at int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	alone, err := keyed.Change(ctx, s.server.Records, s.caller()+" "+to.Key(), parseRecord, func(old record, now int64) ([]byte, int64) {
		before, at = old, now
		next := change(old, now)
		if next.Email == "" {
			return nil, 0
		}
		text, _ := json.Marshal(next) // never fails
		return text, next.Expires
	})
	if err == nil && s.recorded && alone != s.alone {
		err = errAlone
	}
	s.recorded, s.alone = true, alone
	return before, at, err
}

// open records that an email to a recipient is open, unless an earlier one may yet be repeated. It returns when
// that was.
func (s *session) open(to address.Address) (at int64, err error) {
	_, at, err = s.update(s.mail.Context(), to, func(old record, now int64) record {
		if old.open(now) || old.ended(now) {
			return old
		}
		return record{Email: s.id, Until: now + openLife, Expires: now + openLife}
	})
	return at, err
}

// mayRepeat returns the answer to a recipient whose limit is reached. It is nil if the text may be that of the
// email that used the limit, whose reply was lost: that is decided when the text has come.
func (s *session) mayRepeat(to address.Address, refusal *smtp.SMTPError) *smtp.SMTPError {
	last, now, err := s.update(s.mail.Context(), to, func(old record, _ int64) record { return old })
	switch {
	case err != nil:
		return failed(err, false)
	case last.open(now) && last.Email != s.id:
		return inProgress
	case !last.ended(now):
		return refusal
	}
	return nil
}

// claim records that the text may leave to a recipient, unless it did before: then it returns the first reply, and
// which email that was, or that it is being sent on another connection.
func (s *session) claim(to recipient, text []byte, life int64) (answer *smtp.SMTPError, email string) {
	before, now, err := s.update(s.mail.Context(), to.Address, func(old record, now int64) record {
		if old.answers(text, to.named, now) || to.refused != nil {
			return old
		}
		next := record{Email: s.id, Until: now + openLife, Expires: now + life, Text: text, Reply: notConfirmed}
		if old.ended(now) {
			old.Before, next.Before = nil, &old
		}
		return next
	})
	switch same := before.answers(text, to.named, now) && before.Email != to.email; { // an alias is the same mailbox
	case err != nil:
		return failed(err, false), ""
	case same && before.open(now):
		return inProgress, ""
	case same:
		return before.Reply, before.Email
	case to.refused != nil:
		return to.refused.answer, ""
	}
	return nil, ""
}

// settle keeps the reply to an email for a repeat. Without a reply it forgets the email, which did not leave.
func (s *session) settle(all []recipient, answer *smtp.SMTPError, life int64) {
	ctx := s.server.life
	if answer == nil {
		ctx, _ = cache.Batch(ctx) // nothing has to wait for it
	}
	for _, to := range all {
		_, _, err := s.update(ctx, to.Address, func(old record, now int64) record {
			switch {
			case old.Email != to.email:
				return old
			case answer != nil:
				return record{Email: to.email, Expires: now + life, Text: old.Text, Reply: answer}
			case old.open(now) && old.Before != nil && old.Before.ended(now):
				return *old.Before
			}
			return record{}
		})
		if err != nil && answer != nil {
			s.server.Log.Warn("the reply to an email could not be stored: if it is lost, a repeat is a new email", "door", door, "request_id", to.email, "mailbox", to.Address, "cause", err.Error())
		}
	}
}

// arrived records that the client has read the reply. The same text is then another email, but for one that
// began before: the client had given that up, and its end may come late.
func (s *session) arrived(all []recipient) {
	ctx, _ := cache.Batch(s.server.life)
	for _, to := range all {
		_, _, _ = s.update(ctx, to.Address, func(old record, now int64) record {
			if old.Email == to.email && !old.open(now) {
				old.Read, old.Expires = now, min(old.Expires, now+openLife)
			}
			return old
		})
	}
}

// fingerprint identifies a text, and says for how long a repeat of it is the same email.
func fingerprint(text []byte) (hash []byte, life int64) {
	sum := sha256.Sum256(text)
	if id, n, _ := field(text, "message-id"); n == 1 && strings.TrimSpace(id) != "" {
		return sum[:], idLife
	}
	return sum[:], textLife
}
