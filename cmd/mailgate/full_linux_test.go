package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/servertest"
)

// smallDisk is set in the process that TestFullDisk starts, to where it may mount one.
const smallDisk = "MAILGATE_TEST_SMALL_DISK"

// A disk runs full under a server: it admits nobody and says at /readyz that it cannot
// serve; looks and denials go on; and once there is room all is well again.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(smallDisk); dir != "" {
		mountSmall(t, dir)
		serveOnFullDisk(t, dir)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	child.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatalf("making the mounts private: %v", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatalf("mounting: %v", err)
	}
}

func serveOnFullDisk(t *testing.T, dir string) {
	relay := startRelay(t, sandbox.Options{})
	server := startServer(t, settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+filepath.Join(dir, "data")))
	app := newClient(t, server.URL, apiKey)
	app.must(t, "GET", "/readyz", "", 200)
	app.mustSend(t, "known@example.com", 200)

	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	tries := 0
	servertest.Eventually(t, "a send to be refused", func() bool {
		tries++
		a, err := app.sendCode(fmt.Sprintf("early%d@example.com", tries))
		return err == nil && a.Status == 503
	})
	refused := len(relay.List())
	a := app.mustSend(t, "new@example.com", 503)
	if a.Body.Type != "urn:mailgate:problem:store-unavailable" || a.Header.Get("Retry-After") == "" {
		t.Errorf("a send: %+v", a.Body)
	}
	if ready := app.must(t, "GET", "/readyz", "", 503); ready.Body.Type != "urn:mailgate:problem:not-ready" {
		t.Errorf("readiness: %+v", ready.Body)
	}
	app.must(t, "GET", "/livez", "", 200)
	app.mustSend(t, "known@example.com", 429)
	app.must(t, "GET", "/mailboxes/known@example.com", "", 200)
	ops := newClient(t, server.URL, adminKey)
	ops.must(t, "POST", "/admin/mailboxes/known@example.com/reset", "", 503)
	if n := len(relay.List()); n != refused {
		t.Errorf("%d mails were sent meanwhile", n-refused)
	}

	if n := strings.Count(server.log.String(), `"msg":"the data directory takes no writes","cause":"the disk is full: `); n != 1 {
		t.Errorf("%d lines of the log say that the disk is full:\n%s", n, server.log.String())
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "readiness", func() bool {
		a, err := app.ask("GET", "/readyz", "")
		return err == nil && a.Status == 200
	})
	app.mustSend(t, "late@example.com", 200)
}

// fill takes all that the file system has.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	chunk := make([]byte, 64<<10)
	for err == nil {
		_, err = file.Write(chunk)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
