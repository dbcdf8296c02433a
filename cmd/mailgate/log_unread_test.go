package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

// A heldLog is one that nobody reads while it is held.
type heldLog struct {
	*output
	read chan struct{} // one for each time that somebody does
}

func (h heldLog) Write(lines []byte) (int, error) {
	<-h.read
	return h.output.Write(lines)
}

// Where nobody reads the log nobody waits for it. What there is room for is there once it is
// read, in its order, and a line says how many are not.
func TestNobodyWaitsForTheLog(t *testing.T) {
	held := heldLog{newOutput(), make(chan struct{})}
	log := newUnreadLog(held)
	log.tell = func(lost int) { fmt.Fprintf(log, "%d lost\n", lost) }
	line := strings.Repeat("x", 1015)
	const lines = 2000
	for n := range lines {
		if written, err := fmt.Fprintf(log, "%07d %s\n", n, line); written != 1024 || err != nil {
			t.Fatal(written, err)
		}
	}
	const kept = "an operator's\n"
	if n, err := fmt.Fprint(keptLog{log}, kept); n != len(kept) || err != nil {
		t.Fatal(n, err)
	}
	lost := int(log.lost.Load())
	if lost < lines/3 || lost > lines*2/3 {
		t.Fatalf("%d lines are lost of %d, and a MiB may wait", lost, lines)
	}
	close(held.read)
	word := held.await(t, "the word on it", func(text string) (string, bool) {
		_, word, found := strings.Cut(text, fmt.Sprintf("%07d %s\n", lines-lost-1, line))
		return word, found && strings.HasSuffix(word, "lost\n")
	})
	if want := fmt.Sprintf(kept+"%d lost\n", lost); word != want {
		t.Errorf("after the last line comes %.100q, want %q", word, want)
	}
	for n, got := range strings.Split(held.String(), "\n")[:lines-lost] {
		if !strings.HasPrefix(got, fmt.Sprintf("%07d ", n)) {
			t.Fatalf("line %d is %.20q", n, got)
		}
	}
}

// A line is written when its writer goes on, and where nobody reads for a moment he waits, and
// nobody after him.
func TestLinesAreWritten(t *testing.T) {
	held := heldLog{newOutput(), make(chan struct{})}
	log := newUnreadLog(held)
	log.flush() // there is nothing to wait for
	began := time.Now()
	fmt.Fprint(log, "one\n")
	if waited := time.Since(began); waited < unreadPatience {
		t.Errorf("waited for %v", waited)
	}
	fmt.Fprint(log, "two\n")
	if got := held.String(); got != "" {
		t.Fatalf("nobody reads, and there is %q", got)
	}
	close(held.read)
	held.await(t, "both lines", func(text string) (string, bool) { return text, text == "one\ntwo\n" })
	log.flush()
	fmt.Fprint(log, "three\n")
	if got := held.String(); got != "one\ntwo\nthree\n" {
		t.Errorf("written is %q", got)
	}
}

// A log that fails is lost, and what comes when it works again is not.
func TestALogThatFails(t *testing.T) {
	out := newOutput()
	failing := &failingOnce{to: out}
	log := newUnreadLog(failing)
	log.tell = func(lost int) { fmt.Fprintf(log, "%d lost\n", lost) }
	fmt.Fprint(keptLog{log}, "one\n")
	fmt.Fprint(keptLog{log}, "two\n")
	if got := out.await(t, "the word on it", func(text string) (string, bool) { return text, strings.HasSuffix(text, "lost\n") }); got != "two\n1 lost\n" {
		t.Errorf("logged is %q", got)
	}
}

type failingOnce struct {
	to     *output
	failed bool
}

func (f *failingOnce) Write(lines []byte) (int, error) {
	if !f.failed {
		f.failed = true
		return 0, fmt.Errorf("no room")
	}
	return f.to.Write(lines)
}

// A command that fails ends, though nobody reads why.
func TestNobodyReadsTheLastWord(t *testing.T) {
	held := heldLog{newOutput(), make(chan struct{})}
	if status := (call{stderr: held}).status(errors.New("no")); status != exitFailure {
		t.Errorf("ended with %d", status)
	}
	close(held.read)
	held.await(t, "the last word", func(text string) (string, bool) { return text, text == "mailgate: no\n" })
}

// A server whose log hangs answers, and ends when it is told to.
func TestServesWithoutALog(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	_, log, stop := within(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:"), "serve")
	url := "http://" + log.await(t, "the address", logged("serving", "address"))
	log.mu.Lock()
	newClient(t, url, apiKey).mustSend(t, "alice@example.com", 200)
	newClient(t, url, adminKey).must(t, "POST", "/admin/mailboxes/alice@example.com/reset", "", 200)
	newClient(t, url, apiKey).mustSend(t, "alice@example.com", 200)
	status := stop()
	log.mu.Unlock()
	if status != exitOK {
		t.Errorf("ended with %d", status)
	}
	log.await(t, "the last word", logged("stopped", "level"))
	if n := len(mentions(log, `"audit":true`)); n != 1 {
		t.Errorf("%d lines say what the operator did", n)
	}
}

// A server goes on where whoever read its log has gone.
func TestTheReaderOfTheLogIsGone(t *testing.T) {
	relay := startRelay(t, sandbox.Options{})
	log, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(os.Args[0], "serve")
	server.Env = append(settingsFor(relay.URL(), "MAILGATE_DATA_DIR=:memory:"), beProgram+"=1")
	server.Stderr = stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may be gone already
		_ = server.Wait()
	})
	stderr.Close()
	url := ""
	for lines := bufio.NewScanner(log); url == "" && lines.Scan(); {
		if address, ok := logged("serving", "address")(lines.Text()); ok {
			url = "http://" + address
		}
	}
	log.Close()
	app := newClient(t, url, apiKey)
	app.mustSend(t, "alice@example.com", 200)
	app.mustSend(t, "alice@example.com", 429)
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
