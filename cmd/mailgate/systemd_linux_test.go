package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// The journal shows warnings by their priority.
func TestServe_ToTheJournal_EachLineHasItsPriority(t *testing.T) {
	t.Parallel()
	path := servertest.Write(t, filepath.Join(t.TempDir(), "journal"), "")
	info := must.Get(os.Stat(path))(t).Sys().(*syscall.Stat_t)
	dir := t.TempDir()
	logged := func(status int, stream string, environ ...string) string {
		t.Helper()
		must.OK(t, os.Truncate(path, 0))
		environ = append(environ, "TO="+path, "JOURNAL_STREAM="+stream)
		p := launch(t, []string{"/bin/sh", "-c", `exec "$0" "$@" 2>>"$TO"`}, environ, "serve")
		if status == exitOK {
			servertest.Eventually(t, "the start", func() bool { return strings.Contains(readFile(t, path), "serving") })
			p.Signal(t, syscall.SIGTERM)
		}
		if got := p.End(t); got != status {
			t.Errorf("exit status %d", got)
		}
		return readFile(t, path)
	}
	journal := fmt.Sprintf("%d:%d", info.Dev, info.Ino)
	for _, format := range []string{"text", "json"} {
		environ := settingsFor(startRelay(t).URL(), "MAILGATE_LOG_FORMAT="+format, "MAILGATE_DATA_DIR="+filepath.Join(dir, format))
		text := logged(exitOK, journal, environ...)
		for line := range strings.Lines(text) {
			want := "<6>"
			if strings.Contains(line, "WARN") {
				want = "<4>"
			}
			if !strings.HasPrefix(line, want) {
				t.Errorf("want %s before %s", want, line)
			}
		}
		if !strings.Contains(text, "\n<4>") && !strings.HasPrefix(text, "<4>") {
			t.Errorf("no warning:\n%s", text)
		}
		if text := logged(exitOK, "1:1", environ...); strings.Contains(text, "<") {
			t.Errorf("not to the journal:\n%s", text)
		}
	}
	if text := logged(exitMisusage, journal, "MAILGATE_LISTEN=x"); !strings.HasPrefix(text, "<3>mailgate: MAILGATE_LISTEN") {
		t.Error(text)
	}
}

func TestServe_UnderSystemd_NotifiesReadyAndStopping(t *testing.T) {
	t.Parallel()
	dir := must.Get(os.MkdirTemp("", "notify"))(t) // t.TempDir is too long for a socket
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	systemd := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	defer systemd.Close()
	state := func() string {
		text := make([]byte, 100)
		return string(text[:must.Get(systemd.Read(text))(t)])
	}
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "NOTIFY_SOCKET="+path))
	if got := state(); got != "READY=1" {
		t.Errorf("at the start: %q", got)
	}
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	server.Signal(t, syscall.SIGTERM)
	if got := state(); got != "STOPPING=1" {
		t.Errorf("at the stop: %q", got)
	}
	if status := server.End(t); status != exitOK {
		t.Errorf("exit status %d", status)
	}
}
