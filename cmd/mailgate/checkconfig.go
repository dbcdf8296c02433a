package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

func checkConfigCommand() command {
	return command{
		name:    "check-config",
		summary: "check the settings, and print them with secrets masked",
		teaches: `
Reads the settings as serve would, tries out the templates, and prints each setting,
its value and where it comes from. Secrets are masked. Nothing is started and nobody
is connected to. A setting that cannot be right is one line on stderr, and the exit
status is 2.`,
		run: checkConfig,
	}
}

func checkConfig(_ context.Context, c call) error {
	s, _, err := c.settings()
	if err != nil {
		return err
	}
	if err := s.ForSending(); err != nil {
		return err
	}
	if _, err := loadTemplates(s); err != nil {
		return err
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, setting := range settings.Catalogue() {
		origin := s.Origin(setting.Name)
		from := origin.Level.String()
		if origin.Given() {
			from += " " + origin.Place
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", setting.Name, cmp.Or(s.Shown(setting.Name), "(not set)"), from)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, place := range s.Unused() {
		fmt.Fprintf(&b, "note: %s has no effect, because the history is in Redis\n", place)
	}
	_, err = fmt.Fprint(c.stdout, b.String())
	return err
}
