package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/mailer/sandbox"
)

// What is on record is for the server's user alone, whoever may look into the directory,
// and a directory that everybody may write to is worth a warning. So it is beside Redis,
// where the directory holds what the node goes on with.
func TestTheHistoryIsPrivate(t *testing.T) {
	beside := []string{"MAILGATE_REDIS_URL=" + redistest.Alone(t).URL(), "MAILGATE_REDIS_TIMEOUT=10s", shared}
	for name, tt := range map[string]struct {
		mode   os.FileMode
		redis  []string
		warned bool
	}{
		"others may look":                {mode: 0o755},
		"others may write":               {mode: 0o777, warned: true},
		"others may look, beside redis":  {mode: 0o755, redis: beside},
		"others may write, beside redis": {mode: 0o777, redis: beside, warned: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, tt.mode); err != nil {
				t.Fatal(err)
			}
			server := startServer(t, settingsFor(startRelay(t, sandbox.Options{}).URL(), append(tt.redis, "MAILGATE_DATA_DIR="+dir)...))
			newClient(t, server.URL, apiKey).mustSend(t, strings.NewReplacer(" ", "-", ",", "").Replace(name)+"@example.com", 200)
			files, err := filepath.Glob(dir + "/*")
			if err != nil || len(files) < 4 {
				t.Fatalf("%q, %v", files, err)
			}
			for _, file := range files {
				if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s: %v, %v", filepath.Base(file), info.Mode(), err)
				}
			}
			if said := strings.Contains(server.log.String(), "other users of this machine may write to the data directory"); said != tt.warned {
				t.Errorf("warned %v", said)
			}
		})
	}
}
