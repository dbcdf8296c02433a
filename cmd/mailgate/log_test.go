package main

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// However quiet the log is, what operators did is in it.
func TestAuditSpeaksAtEveryLevel(t *testing.T) {
	for format, want := range map[string]string{"json": `"audit":true`, "text": "audit=true"} {
		s, _, err := settings.Read([]string{"--log-level=error", "--log-format=" + format}, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := newOutput()
		newLog(s, out).Warn("not to be heard")
		newAudit(s, out).Info("reset")
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
			t.Errorf("the log holds:\n%s", got)
		}
	}
}
