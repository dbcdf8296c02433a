package submission_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/submission"
)

// The table of commands.md is what a client reads.
func TestCommands_Table_AsDocumented(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(string(must.Get(os.ReadFile("commands.md"))(t)), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n## ")
	code := regexp.MustCompile("`([^`]+)`")
	r := start(t, setup{tiers: "hour=500/1h", options: func(o *submission.Options) { o.MaxConnections = 1000 }})
	steps := []string{"the greeting", "EHLO", "AUTH", "MAIL", "RCPT"}
	says := []struct{ line, want string }{
		{}, {"EHLO client.example", "250"}, {"AUTH PLAIN " + plain("app", appSecret), "235 2.7.0"},
		{"MAIL FROM:<no-reply@acme.example>", "250"}, {"RCPT TO:<bob@example.com>", "250"},
	}
	step, rows := 0, 0
	for _, row := range regexp.MustCompile(`(?m)^\| (.*)\| (.+) \| (.+) \|$`).FindAllStringSubmatch(table, -1)[1:] {
		if after := strings.Trim(row[1], "` "); after != "" {
			if step++; rows == 0 {
				step = 0
			}
			if after != steps[step] {
				t.Fatalf("%q follows %q", after, steps[step])
			}
		}
		groups, replies := strings.Split(row[2], "; "), strings.Split(row[3], "; ")
		if len(groups) != len(replies) {
			t.Fatalf("%s has %d groups of commands and %d replies", row[0], len(groups), len(replies))
		}
		for i, group := range groups {
			for _, command := range code.FindAllStringSubmatch(group, -1) {
				c := r.dial()
				for _, one := range says[1 : step+1] {
					c.says(one.line, one.want)
				}
				c.says(command[1], strings.Trim(replies[i], "`"))
				c.Close()
				rows++
			}
		}
	}
	if step != len(steps)-1 || rows < 40 {
		t.Errorf("%d commands up to %s", rows, steps[step])
	}
}
