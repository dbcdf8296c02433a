package mailtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/servertest"
)

// Mail is a delivered email.
type Mail struct {
	// From and To are the envelope, as the server had it at delivery.
	From, To string
	// Text is the email as it lies in the mailbox: lines end in LF alone, and the
	// server's Received header comes first.
	Text []byte
}

// Mails waits until all that the server has taken over is delivered, and returns it, in no
// order. An email is in the spool before the server says that it took it over, and leaves it
// after it was delivered.
func (s *Server) Mails(t testing.TB) (mails []Mail) {
	t.Helper()
	servertest.Await(t, "the mail server's queue to be empty", startLimit, func() error {
		waiting, err := os.ReadDir(filepath.Join(s.dir, "spool", "input"))
		if len(waiting) > 0 {
			return fmt.Errorf("%d files are in it; the log says:\n%s", len(waiting), s.Log())
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil // no email has come yet
		}
		return err
	})
	mails, err := s.box()
	if err != nil {
		t.Fatalf("cannot read the mailbox: %v", err)
	}
	return mails
}

// box reads the mailbox. A file appears there whole, under its final name. The server writes
// the envelope above everything that came from outside, so nothing in an email can pass for it.
func (s *Server) box() (mails []Mail, err error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "box", "new", "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		first, rest, _ := bytes.Cut(text, []byte("\n"))
		second, rest, _ := bytes.Cut(rest, []byte("\n"))
		from, okFrom := strings.CutPrefix(string(first), "Return-path: ")
		to, okTo := strings.CutPrefix(string(second), "Envelope-to: ")
		if !okFrom || !okTo {
			return nil, fmt.Errorf("an email in the mailbox begins with %q, %q", first, second)
		}
		mails = append(mails, Mail{From: strings.Trim(from, "<>"), To: to, Text: rest})
	}
	return mails, nil
}
