package mailtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
)

// Mail is one delivered mail.
type Mail struct {
	// From and To are the envelope, as the server had it at delivery.
	From, To string
	// Text is the mail as it lies in the mailbox: lines end in LF alone, and the
	// server's Received header comes first.
	Text []byte
}

// deliveryLimit is far more than a delivery takes on a busy machine.
const deliveryLimit = 20 * time.Second

// Await waits for the first mail to a recipient and returns its text.
func (s *Server) Await(t testing.TB, recipient string) []byte {
	t.Helper()
	var text []byte
	servertest.Await(t, "a mail to be delivered", deliveryLimit, func() error {
		mails, err := s.box()
		if err != nil {
			return err
		}
		for _, mail := range mails {
			if mail.To == recipient {
				text = mail.Text
				return nil
			}
		}
		return fmt.Errorf("none of %d is to %s; the log says:\n%s", len(mails), recipient, s.Log())
	})
	return text
}

// Mails waits until all that the server has taken over is delivered, and
// returns it, in no order.
func (s *Server) Mails(t testing.TB) []Mail {
	t.Helper()
	servertest.Await(t, "the mail server's queue to be empty", deliveryLimit, s.queueEmpty)
	mails, err := s.box()
	if err != nil {
		t.Fatalf("cannot read the mailbox: %v", err)
	}
	return mails
}

// queueEmpty looks into the spool. A mail is there before the server says that
// it took it over, and leaves it after it was delivered.
func (s *Server) queueEmpty() error {
	waiting, err := os.ReadDir(filepath.Join(s.dir, "spool", "input"))
	if err == nil && len(waiting) > 0 {
		return fmt.Errorf("%d files are in it; the log says:\n%s", len(waiting), s.Log())
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil // no mail has come yet
	}
	return err
}

// box reads the mailbox. A file appears there whole, under its final name.
func (s *Server) box() ([]Mail, error) {
	dir := filepath.Join(s.dir, "box", "new")
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // no mail has come yet
	}
	if err != nil {
		return nil, err
	}
	var mails []Mail
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		mail, err := readMail(text)
		if err != nil {
			return nil, err
		}
		mails = append(mails, mail)
	}
	return mails, nil
}

// readMail takes the envelope off a mail. The server writes it above everything
// that came from outside, so nothing in a mail can pass for it.
func readMail(text []byte) (Mail, error) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	second, rest, _ := bytes.Cut(rest, []byte("\n"))
	from, okFrom := strings.CutPrefix(string(first), "Return-path: ")
	to, okTo := strings.CutPrefix(string(second), "Envelope-to: ")
	if !okFrom || !okTo {
		return Mail{}, fmt.Errorf("a mail in the mailbox begins with %q, %q", first, second)
	}
	return Mail{From: strings.Trim(from, "<>"), To: to, Text: rest}, nil
}
