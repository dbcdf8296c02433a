package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// A backup has every send that was answered before it began: of a node under load, and of one
// that was killed. The restored node knows them, and its secret.
func TestBackup_UnderLoadAndAfterKill_IsRestored(t *testing.T) {
	t.Parallel()
	relay, dir := startRelay(t), filepath.Join(t.TempDir(), "data")
	environ := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+dir)
	server := startServer(t, environ)
	app := newClient(t, server.URL, apiKey)
	countdown := app.mustSend(t, "alice@example.com", 200).Body.Countdown

	var load sync.WaitGroup
	var answered [4]atomic.Int64 // sends of each caller
	var stop atomic.Bool
	for caller := range answered {
		load.Go(func() {
			for n := 0; !stop.Load(); n++ {
				if r, err := app.ask("POST", "/send-code", bodyFor(fmt.Sprintf("user%d-%d@example.com", caller, n)), nil); err != nil || r.Status != 200 {
					if !stop.Load() {
						t.Errorf("send %d of %d: %d, %v", n, caller, r.Status, err)
					}
					return
				}
				answered[caller].Add(1)
			}
		})
	}
	count := func() (all [4]int64) {
		for caller := range answered {
			all[caller] = answered[caller].Load()
		}
		return all
	}
	servertest.Eventually(t, "load", func() bool { return count()[0] > 50 })
	busy := count()
	loaded, dead := filepath.Join(t.TempDir(), "loaded"), filepath.Join(t.TempDir(), "dead")
	does(t, environ, exitOK, "records", "backup", loaded)
	stop.Store(true)
	server.Stop(t, syscall.SIGKILL)
	load.Wait()
	killed := count()
	does(t, environ, exitOK, "records", "backup", dead)

	for _, tt := range []struct {
		file string
		has  [4]int64
	}{{loaded, busy}, {dead, killed}} {
		if info := must.Get(os.Stat(tt.file))(t); info.Mode().Perm() != 0o600 {
			t.Errorf("its mode is %v", info.Mode())
		}
		to := filepath.Join(t.TempDir(), "restored")
		again := settingsFor(relay.URL(), "MAILGATE_DATA_DIR="+to)
		does(t, again, exitOK, "are forgotten", "restore", tt.file)
		does(t, again, exitMisusage, "has a history", "restore", tt.file)
		restored := startServer(t, again)
		app := newClient(t, restored.URL, apiKey)
		app.mustSend(t, "alice@example.com", 429)
		app.must(t, "GET", "/countdown/"+countdown, "", 200)
		for caller, n := range tt.has {
			for _, i := range []int64{0, n / 2, n - 1} {
				if n > 0 {
					app.mustSend(t, fmt.Sprintf("user%d-%d@example.com", caller, i), 429)
				}
			}
		}
		if text := restored.Log.String(); strings.Contains(text, `"WARN"`) {
			t.Errorf("the start warns: %s", text)
		}
		restored.Stop(t, syscall.SIGTERM)
	}
}

// What cannot be a whole backup is none.
func TestBackup_Mistakes_LeaveNoFile(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir, file := filepath.Join(parent, "data"), filepath.Join(parent, "file")
	environ := settingsFor("smtp://127.0.0.1:1?tls=none", "MAILGATE_DATA_DIR="+dir)
	does(t, environ, exitMisusage, "has no history", "backup", file)
	does(t, append(environ, "MAILGATE_DATA_DIR=no-data"), exitMisusage, ": "+absolute("no-data")+" has no history", "backup", file)
	startServer(t, environ).Stop(t, syscall.SIGTERM)
	does(t, environ, exitOK, "", "backup", file)
	does(t, environ, exitFailure, "mailgate: "+file+": file already exists; name a new file\n", "backup", file)
	does(t, append(environ, "MAILGATE_DATA_DIR=:memory:"), exitMisusage, "MAILGATE_DATA_DIR", "backup", file+"2")
	does(t, append(environ, "MAILGATE_REDIS_URL=redis://127.0.0.1:1"), exitMisusage, "back up Redis", "backup", file+"2")
	does(t, environ, exitMisusage, "has a history", "restore", file)

	empty := append(environ, "MAILGATE_DATA_DIR="+dir+"2")
	does(t, empty, exitFailure, "no such file", "restore", file+"2")
	cut := must.Get(os.ReadFile(file))(t)
	servertest.Write(t, file+"3", string(cut[:len(cut)/2]))
	does(t, empty, exitFailure, "the data is corrupt", "restore", file+"3")
	other := must.Get(cache.Open(cache.Options{Dir: dir + "4", Format: recordFormat + 1}))(t)
	must.OK(t, other.Close())
	does(t, empty, exitFailure, "another format", "restore", filepath.Join(dir+"4", "history.db"))
	must.OK(t, os.WriteFile(filepath.Join(dir, "history.db"), cut[:len(cut)/2], 0o600))
	does(t, environ, exitFailure, "the data is corrupt", "backup", file+"2")
	if left := must.Get(filepath.Glob(file + "2*"))(t); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	if left := must.Get(filepath.Glob(dir + "2/history*"))(t); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}
