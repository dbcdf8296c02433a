package main

import (
	"testing"

	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// Every side that is given letters really sends them: the relay then has one mail for
// each recipient. smtp-source sends what it likes, and the Pool has a data race of its
// own; what that one is given is in the next test.
func TestSendersSendAll(t *testing.T) {
	letters, err := composeAll(12)
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.Start(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	checked := 0
	err = withSenders(box.Addr(), letters, func(sides []side) error {
		for _, s := range sides {
			if s.name == sourceName || s.name == poolName {
				continue
			}
			checked++
			box.Clear()
			if _, err := s.round(); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			recipients := map[string]bool{}
			for _, m := range box.List() {
				recipients[m.To[0]] = true
			}
			if mails := len(box.List()); mails != len(letters) || len(recipients) != len(letters) {
				t.Errorf("%s: %d mails to %d recipients, want %d", s.name, mails, len(recipients), len(letters))
			}
		}
		return nil
	})
	if err != nil || checked != 3 {
		t.Fatalf("%d sides: %v", checked, err)
	}
}

// The Pool's mails say what ours say.
func TestEmailsSayTheSame(t *testing.T) {
	letters, err := composeAll(1)
	if err != nil {
		t.Fatal(err)
	}
	emails, err := emailsOf(letters)
	if err != nil {
		t.Fatal(err)
	}
	octets, err := emails[0].Bytes()
	if err != nil {
		t.Fatal(err)
	}
	ours := letters[0].message
	want, err := asRead(ours)
	if err != nil {
		t.Fatal(err)
	}
	got, err := asRead(message.Message{ID: ours.ID, From: ours.From, To: ours.To, Bytes: octets})
	if err != nil {
		t.Fatal(err)
	}
	if got.Subject != want.Subject || got.Text != want.Text || got.HTML != want.HTML || want.Text == "" || want.HTML == "" {
		t.Errorf("theirs\n%q\n%q\n%q\nours\n%q\n%q\n%q", got.Subject, got.Text, got.HTML, want.Subject, want.Text, want.HTML)
	}
}
