package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

func TestConnectionsWithin(t *testing.T) {
	for _, tt := range []struct{ asked, relays, files, want int }{
		{10_000, 1, 65_536, 10_000},
		{100_000, 1, 65_536, 65_536 - 1024 - 8},
		{100_000, 3, 65_536, 65_536 - 1024 - 24},
		{10_000, 1, 4096, 3064},
		{10_000, 1, 1024, 256},
		{100, 1, 1024, 100},
		{10_000, 1, 3, 1},
	} {
		s := &config.Config{MaxConnections: tt.asked, SMTPMaxConns: 8, SMTPURL: make([]relay.URL, tt.relays)}
		if got := connectionsWithin(s, tt.files); got != tt.want {
			t.Errorf("of %d with %d relays and %d files: %d, want %d", tt.asked, tt.relays, tt.files, got, tt.want)
		}
	}
}

// Silent strangers do not use up the files of a process that may have fewer than
// max_connections: mail goes on, also while all who came as it was held up are let in at once.
func TestStrangersLeaveFiles(t *testing.T) {
	const files, strangers, others = 400, 400, 20 // others are to the relay, and made by the history as it works
	relay := startRelay(t, sandbox.Options{})
	fewFiles := []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)}
	server := launchBy(t, fewFiles, settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+t.TempDir()), "serve")
	server.URL = "http://" + server.log.await(t, "the address", logged("serving", "address"))
	before := openFiles(t, server)
	server.signal(t, syscall.SIGSTOP)
	for range strangers {
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	app, sent := newClient(t, server.URL, apiKey), make(chan answer, 1)
	go func() {
		a, err := app.sendCode("alice@example.com")
		if err != nil {
			t.Error(err)
		}
		sent <- a
	}()
	server.signal(t, syscall.SIGCONT)
	most := openFiles(t, server)
	for len(sent) == 0 {
		most = max(most, openFiles(t, server))
	}
	if a := <-sent; a.Status != 200 {
		t.Errorf("the mail was answered %d:\n%s", a.Status, server.log)
	}
	if most > before+files/4+others {
		t.Errorf("of %d files %d were open, %d of them before the strangers came", files, most, before)
	}
	if open, _ := strconv.Atoi(metric(t, server, "mailgate_http_connections")); open < 1 || open > files/4 {
		t.Errorf("%d connections are open", open)
	}
	warned := mentions(server.log, "fewer connections than max_connections")
	if len(warned) != 1 || warned[0]["connections"] != float64(files/4) || warned[0]["files"] != float64(files) {
		t.Errorf("the log says %v", warned)
	}
}

// openFiles is how many files a process has open.
func openFiles(t *testing.T, p *process) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
