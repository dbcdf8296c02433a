package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

// What is on record is for the server's user alone, whoever may look into the directory,
// and a directory that everybody may write to is worth a warning.
func TestTheHistoryIsPrivate(t *testing.T) {
	for mode, warned := range map[os.FileMode]bool{0o755: false, 0o777: true} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		server := startServer(t, settingsFor(startRelay(t, sandbox.Options{}).URL(), "MAILGATE_DATA_DIR="+dir))
		newClient(t, server.URL, apiKey).mustSend(t, "alice@example.com", 200)
		files, err := filepath.Glob(dir + "/*")
		if err != nil || len(files) < 4 {
			t.Fatalf("%q, %v", files, err)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", filepath.Base(file), info.Mode(), err)
			}
		}
		if said := strings.Contains(server.log.String(), "others on this machine may write to the data directory"); said != warned {
			t.Errorf("%v: warned %v", mode, said)
		}
	}
}
