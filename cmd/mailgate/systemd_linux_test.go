package main

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/servertest"
)

func TestServe_UnderSystemd_NotifiesReadyAndStopping(t *testing.T) {
	t.Parallel()
	dir := servertest.Must(os.MkdirTemp("", "notify"))(t) // t.TempDir is too long for a socket
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	systemd := servertest.Must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	defer systemd.Close()
	state := func() string {
		text := make([]byte, 100)
		return string(text[:servertest.Must(systemd.Read(text))(t)])
	}
	server := startServer(t, settingsFor(startRelay(t).URL(), inMemory, "NOTIFY_SOCKET="+path))
	if got := state(); got != "READY=1" {
		t.Errorf("at the start: %q", got)
	}
	newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
	server.signal(t, syscall.SIGTERM)
	if got := state(); got != "STOPPING=1" {
		t.Errorf("at the stop: %q", got)
	}
	if status := server.end(t); status != exitOK {
		t.Errorf("exit status %d", status)
	}
}
