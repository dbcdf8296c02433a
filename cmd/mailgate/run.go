package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// A call is one run of the program: what was typed, and where its output goes.
type call struct {
	args, environ  []string
	stdout, stderr io.Writer
}

// A command is one thing the program can do.
type command struct {
	name, arguments string
	summary         string // one line, for the list
	teaches         string // what else there is to know, for its own help
	run             func(context.Context, call) error
}

func commands() []command {
	return []command{
		serveCommand(), devCommand(), showCommand(), resetCommand(), checkConfigCommand(),
		testMailCommand(), healthcheckCommand(), versionCommand(),
	}
}

// The exit statuses.
const (
	exitOK       = 0
	exitFailure  = 1 // it was tried and did not work
	exitMisusage = 2 // it could not be tried: a wrong command line, a wrong setting
)

// Run is the whole program: it carries out one command line and returns the exit
// status. Ending ctx asks it to end in good order. What goes wrong is one line on
// stderr.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	c := call{args, environ, stdout, stderr}
	if len(args) == 0 {
		writeHelp(stderr)
		return exitMisusage
	}
	name := args[0]
	c.args = args[1:]
	if name == "help" || name == "-h" || name == "--help" {
		return c.help()
	}
	if name == "-v" || name == "--version" {
		name = "version"
	}
	command, err := commandNamed(name)
	switch {
	case err != nil:
	case asksForHelp(c.args):
		command.writeHelp(stdout)
	default:
		err = command.run(ctx, c)
	}
	return c.status(err)
}

func commandNamed(name string) (command, error) {
	for _, command := range commands() {
		if command.name == name {
			return command, nil
		}
	}
	return command{}, misusage(fmt.Sprintf("there is no command %q; mailgate help lists them", name))
}

// misusage is a command line that cannot be carried out.
type misusage string

func (m misusage) Error() string { return string(m) }

// status writes what went wrong and returns the exit status.
func (c call) status(err error) int {
	if err == nil {
		return exitOK
	}
	last := newUnreadLog(c.stderr) // a process whose log hangs ends all the same
	fmt.Fprintln(last, "mailgate: "+strings.Map(func(c rune) rune {
		if unicode.IsControl(c) { // some of it may be a stranger's words
			return ' '
		}
		return c
	}, err.Error()))
	var wrongSetting *settings.Error
	var wrongUse misusage
	if errors.As(err, &wrongSetting) || errors.As(err, &wrongUse) {
		return exitMisusage
	}
	return exitFailure
}

// settings reads the settings for a command that takes these arguments.
func (c call) settings(arguments ...string) (*settings.Settings, []string, error) {
	s, rest, err := settings.Read(c.args, c.environ)
	if err != nil {
		return nil, nil, misuse(err)
	}
	if err := c.expect(rest, arguments...); err != nil {
		return nil, nil, err
	}
	return s, rest, nil
}

// expect refuses a command line with more or fewer arguments than a command takes. One in
// brackets may be left out.
func (c call) expect(rest []string, arguments ...string) error {
	least := len(arguments)
	if least > 0 && strings.HasPrefix(arguments[least-1], "[") {
		least--
	}
	if least <= len(rest) && len(rest) <= len(arguments) {
		return nil
	}
	takes := cmp.Or(strings.Join(arguments, " "), "no argument")
	return misusage(fmt.Sprintf("this command takes %s; arguments given: %d; see its --help", takes, len(rest)))
}

// misuse makes any error in reading settings one of use.
func misuse(err error) error {
	var wrong *settings.Error
	if errors.As(err, &wrong) {
		return err
	}
	return misusage(err.Error())
}
