package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/mailer/message"
)

const sourceName = "smtp-source"

// A source is Postfix's generator of mail, in C: it hands over one mail again and
// again, and does nothing else.
type source struct{ path, file, from, to string }

// newSource needs a directory for the mail.
func newSource(dir string, mail message.Message) (source, error) {
	path, err := postfixTool(sourceName)
	if err != nil {
		return source{}, err
	}
	file := filepath.Join(dir, "mail")
	// It adds the CR itself.
	err = os.WriteFile(file, bytes.ReplaceAll(mail.Bytes, []byte("\r\n"), []byte("\n")), 0o600)
	return source{path: path, file: file, from: mail.From.String(), to: mail.To.String()}, err
}

// round sends so many mails over kept connections.
func (s source) round(addr string, sessions, mails int) (cost, error) {
	cmd := exec.Command(s.path, "-d", "-s", strconv.Itoa(sessions), "-m", strconv.Itoa(mails),
		"-F", s.file, "-f", s.from, "-t", s.to, "-M", "localhost", addr)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", sourceName, err, out)
	}
	return cost{wall: float64(time.Since(began).Nanoseconds()) / float64(mails)}, nil
}
