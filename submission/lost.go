package submission

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/mailer/address"
)

// record is the newest email of a key to a mailbox, until its reply is known to have arrived. A client that
// lost the reply sends the email again, and gets the same one: no second email leaves.
type record struct {
	Email   string          // its id
	Until   int64           // when it has certainly ended
	Expires int64           // when it is forgotten
	Text    []byte          // a hash, once it may leave
	Reply   *smtp.SMTPError // once it has ended
	Before  *record         // the one it replaced, which is back if this one does not leave
}

const (
	openLife = 60_000           // of an email that ends without a reply, in milliseconds: more than its times
	textLife = 15 * 60_000      // of a reply: without a Message-ID the same text may soon be another email
	idLife   = 24 * 60 * 60_000 // with one
)

// is reports what a record is of an email at a moment: still open, or ended with a reply that may be lost.
func (r record) is(now int64) (open, ended bool) {
	alive := r.Email != "" && now < r.Expires
	ended = alive && (r.Reply != nil || r.Text != nil && now >= r.Until)
	return alive && !ended && now < r.Until, ended
}

// answer is the reply of an email that has ended. One whose process was killed may have left.
func (r record) answer() *smtp.SMTPError {
	if r.Reply == nil {
		return notConfirmed
	}
	return r.Reply
}

func parseRecord(text []byte) (r record, err error) {
	if len(text) > 0 {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

func (r record) encode() ([]byte, int64) {
	text, _ := json.Marshal(r) // never fails
	return text, r.Expires
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

// update lets change replace the record of a mailbox, and returns what it was. An email that began with the
// shared records ends with them.
func (s *session) update(to address.Address, change func(old record, now int64) (next record, changed bool)) (before record, at int64, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.server.life), recordTime)
	defer cancel()
	alone, err := keyed.Change(ctx, s.server.Records, s.caller()+" "+to.Key(), parseRecord, func(old record, now int64) ([]byte, int64) {
		before, at = old, now
		next, changed := change(old, now)
		switch {
		case !changed && old.Email == "", changed && next.Email == "":
			return nil, 0
		case !changed:
			next = old
		}
		return next.encode()
	})
	if err == nil && s.recorded && alone != s.alone {
		err = errAlone
	}
	s.recorded, s.alone = true, alone
	return before, at, err
}

// recordTime bounds a step of a record.
const recordTime = 2 * time.Second

// open records that an email to a recipient is open, unless an earlier one may yet be repeated.
func (s *session) open(to address.Address) error {
	_, _, err := s.update(to, func(old record, now int64) (record, bool) {
		isOpen, ended := old.is(now)
		return record{Email: s.id, Until: now + openLife, Expires: now + openLife}, !isOpen && !ended
	})
	return err
}

// leave records that the text may leave to a recipient. It returns the reply to the same text, if that was
// lost, or that it is being sent on another connection.
func (s *session) leave(to address.Address, text []byte, life int64) (earlier *smtp.SMTPError, err error) {
	before, now, err := s.update(to, func(old record, now int64) (record, bool) {
		next := record{Email: s.id, Until: now + openLife, Expires: now + life, Text: text}
		isOpen, ended := old.is(now)
		if ended {
			old.Before, next.Before = nil, &old
		}
		return next, !(isOpen || ended) || !bytes.Equal(old.Text, text)
	})
	isOpen, ended := before.is(now)
	switch same := bytes.Equal(before.Text, text); {
	case err != nil || !same || before.Email == s.id: // an alias is the same mailbox
		return nil, err
	case isOpen:
		return inProgress, nil
	case ended:
		return before.answer(), nil
	}
	return nil, nil
}

// finish keeps the reply for a repeat, or forgets an email that did not leave.
func (s *session) finish(id string, all []recipient, answer *smtp.SMTPError, life int64) {
	for _, to := range all {
		_, _, err := s.update(to.Address, func(old record, now int64) (record, bool) {
			next := old
			next.Reply, next.Expires, next.Before = answer, now+life, nil
			if answer == nil {
				next = record{}
			}
			if answer == nil && old.Reply == nil && old.Before != nil && now < old.Before.Expires {
				next = *old.Before
			}
			return next, old.Email == id
		})
		if err != nil && answer != nil {
			s.server.Log.Warn("the reply to an email could not be stored: if it is lost, a repeat is a new email", "door", door, "request_id", id, "mailbox", to.Address, "cause", err.Error())
		}
	}
}

// settle forgets an email whose reply was repeated: the client has it now.
func (s *session) settle(text []byte, all ...address.Address) {
	for _, to := range all {
		_, _, _ = s.update(to, func(old record, now int64) (record, bool) { // an error only lets the repeat last longer
			_, ended := old.is(now)
			return record{}, ended && bytes.Equal(old.Text, text)
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
