package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

// commandLine is the grammar of the command line: the settings, which every command takes,
// and the commands.
type commandLine struct {
	config.Config

	Serve        serveCommand        `cmd:"" help:"Run the service."`
	Dev          devCommand          `cmd:"" help:"Try it: everything in one process, nothing to set up."`
	CheckConfig  checkConfigCommand  `cmd:"" help:"Check the settings, and print them with secrets masked."`
	TestEmail    testEmailCommand    `cmd:"" help:"Send one email through the relay."`
	Show         showCommand         `cmd:"" help:"Print the limits and sends of a mailbox, from a running node."`
	Reset        resetCommand        `cmd:"" help:"Clear the sends of a mailbox, or the counts of a subject of a rule or action."`
	Requests     requestsCommand     `cmd:"" help:"Print the last sends, refusals and checks of a running node."`
	Suppress     suppressCommand     `cmd:"" help:"Send no email to an address, or to those of a CSV file."`
	Unsuppress   unsuppressCommand   `cmd:"" help:"Remove an address from the suppression list."`
	Suppressions suppressionsCommand `cmd:"" help:"Print the suppression list."`
	Backup       backupCommand       `cmd:"" help:"Copy the data directory to a file, also while the node runs."`
	Restore      restoreCommand      `cmd:"" help:"Make a data directory of a backup."`
	Healthcheck  healthcheckCommand  `cmd:"" help:"Exit with 0 if a running node is ready, else with 1."`
	PrintVersion versionCommand      `cmd:"" name:"version" help:"Print the version."`

	Version kong.VersionFlag `short:"v" help:"Print the version."`
}

// The exit statuses.
const (
	exitOK       = 0
	exitFailure  = 1 // it was tried and did not work
	exitMisusage = 2 // an invalid command line or setting
)

const description = `mailgate is a service in front of SMTP that prevents abuse of "send me a code" forms. To see it work: mailgate dev

A setting is a flag, or else an environment variable (MAILGATE_SMTP_URL for --smtp-url), or else a line of the YAML file that --config or MAILGATE_CONFIG names (smtp_url). A secret can be in a file of its own: --smtp-url-file, MAILGATE_SMTP_URL_FILE, smtp_url_file; so can every other secret. An empty variable counts as not set.`

// streams is where the output of a command goes.
type streams struct{ out, err io.Writer }

// Run carries out one command line and returns the exit status. Ending ctx asks for an
// orderly shutdown. An error is one line on stderr.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	status := exitOK
	switch {
	case len(args) == 0:
		args, stdout, status = []string{"--help"}, stderr, exitMisusage
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	var line commandLine
	answered := false // by --help or --version
	parser, err := kong.New(&line, append(config.Options(environ),
		kong.Name("mailgate"), kong.Description(description), kong.Vars{"version": versionLine()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}), kong.Help(printHelp),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { answered = true }),
		kong.Bind(&line.Config, streams{stdout, stderr}), kong.BindTo(ctx, (*context.Context)(nil)),
	)...)
	if err != nil {
		return complain(stderr, fmt.Errorf("building the command line: %w", err))
	}
	parsed, err := parser.Parse(args)
	switch {
	case answered:
		return status
	case err != nil:
		return complain(stderr, misuse(&line.Config, err))
	}
	if name := parsed.Selected().Name; name != "serve" && name != "healthcheck" { // serve logs them
		for _, unknown := range line.Unknown() {
			fmt.Fprintln(stderr, "mailgate: warning: "+unknown)
		}
	}
	return complain(stderr, parsed.Run())
}

// printHelp leaves the settings to the help of the whole program.
func printHelp(options kong.HelpOptions, parsed *kong.Context) error {
	command := parsed.Selected()
	for _, flag := range parsed.Model.Flags {
		flag.Hidden = flag.Hidden || command != nil && flag.Group != nil
	}
	if err := kong.DefaultHelpPrinter(options, parsed); err != nil || command == nil {
		return err
	}
	_, err := fmt.Fprintln(parsed.Stdout, "\nmailgate --help lists the settings, which are flags of every command.")
	return err
}

// misuse returns the config.Error of a command line that cannot be parsed. An argument may be an
// address, so it is not repeated.
func misuse(c *config.Config, err error) error {
	failed, ok := errors.AsType[*kong.ParseError](err)
	if !ok || !strings.HasPrefix(err.Error(), "unexpected argument") {
		return c.Explain(err)
	}
	if command := failed.Context.Selected(); command != nil {
		return &config.Error{Problem: "too many arguments; see mailgate " + command.Name + " --help"}
	}
	var commands []string
	for _, command := range failed.Context.Model.Children {
		commands = append(commands, command.Name)
	}
	return &config.Error{Problem: err.Error() + "; commands: " + strings.Join(commands, ", ")}
}

// complain prints an error and returns the exit status.
func complain(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		line := "mailgate: " + uncontrolled(err.Error())
		if toJournal(stderr) {
			line = "<3>" + line
		}
		fmt.Fprintln(stderr, line)
	}()
	select {
	case <-printed:
	case <-time.After(flushTimeout): // a reader that stalls keeps no process alive
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return exitMisusage
	}
	return exitFailure
}

// uncontrolled returns a text of which parts may come from a server without control characters.
func uncontrolled(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// version is set by the linker when a release is built.
var version string

// currentVersion returns the linker's, or what the go command knows of the source.
func currentVersion() string {
	known := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		known = info.Main.Version
	}
	return cmp.Or(version, known, "unversioned")
}

type versionCommand struct{}

func (versionCommand) Run(to streams) error {
	_, err := fmt.Fprintln(to.out, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("mailgate %s %s %s/%s", currentVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
