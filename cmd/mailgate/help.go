package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// asksForHelp finds -h or --help among the arguments before a --.
func asksForHelp(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "-h") || slices.Contains(args, "--help")
}

// help is "mailgate help" and "mailgate help <command>".
func (c call) help() int {
	if len(c.args) == 0 {
		writeHelp(c.stdout)
		return exitOK
	}
	command, err := commandNamed(c.args[0])
	if err == nil {
		command.writeHelp(c.stdout)
	}
	return c.status(err)
}

func writeHelp(to io.Writer) {
	var b strings.Builder
	b.WriteString(`mailgate stands in front of SMTP and stops abuse of "send me a code" forms.

Commands:
`)
	for _, command := range commands() {
		fmt.Fprintf(&b, "  %-17s %s\n", strings.TrimSpace(command.name+" "+command.arguments), command.summary)
	}
	b.WriteString(`  help [command]    this text, or what there is to know of a command

To see it work, with nothing set up:  mailgate dev
`)
	writeSettings(&b)
	io.WriteString(to, b.String())
}

func (c command) writeHelp(to io.Writer) {
	fmt.Fprintf(to, "mailgate %s\n\n%s\n", strings.TrimSpace(c.name+" "+c.arguments), strings.TrimSpace(c.teaches))
}

// writeSettings lists every setting as it is named in the environment.
func writeSettings(b *strings.Builder) {
	b.WriteString(`
Settings, each given by a flag, or else in the environment, or else in the YAML file
that --config or MAILGATE_CONFIG names. MAILGATE_SMTP_URL is --smtp-url as a flag and
smtp_url in the file. Those with a * are secrets and can be read from a file of their
own: MAILGATE_SMTP_URL_FILE, --smtp-url-file, smtp_url_file. An empty variable counts
as not set.
`)
	group := ""
	for _, s := range settings.Catalogue() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(b, "\n%s:\n", group)
		}
		star := ""
		if s.Secret {
			star = " *"
		}
		fmt.Fprintf(b, "  %s%s", s.Env(), star)
		if s.Default != "" {
			fmt.Fprintf(b, " (%s)", s.Default)
		}
		fmt.Fprintf(b, "\n      %s\n", s.Help)
	}
}
