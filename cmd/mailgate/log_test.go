package main

import (
	"bufio"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

func TestAudit_EveryLogLevel_IsWritten(t *testing.T) {
	for format, want := range map[string]string{"json": `"audit":true`, "text": "audit=true"} {
		c, out := configOf(t, nil, "--log-level=error", "--log-format="+format), newOutput()
		slog.New(newLogHandler(c, out, c.LogLevel)).Warn("not logged")
		newAudit(c, out).Info("reset")
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("the log holds:\n%s", got)
		}
	}
}

func TestServe_ReaderOfLogGone_GoesOn(t *testing.T) {
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
