package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// The roles of this program's own children: what must not share a process with what
// is measured. A role is the first argument.
const (
	residentChild = "-resident-" // the memory that is measured
	loadChild     = "-load-"     // the callers over HTTP
	sandboxChild  = "-sandbox-"  // the relay
)

// roleOf is what a child is to do, if the arguments are a child's.
func roleOf(args []string) (role func(args []string) error, ok bool) {
	if len(args) == 0 {
		return nil, false
	}
	switch args[0] {
	case residentChild:
		return func(args []string) error { return beResident(args[0]) }, len(args) == 2
	case loadChild:
		return func([]string) error { return beLoad(os.Stdin, os.Stdout) }, true
	case sandboxChild:
		return func([]string) error { return beSandbox(os.Stdin, os.Stdout) }, true
	}
	return nil, false
}

// child is this program in another role, not yet started.
func child(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"--"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// A talk is a running child that is spoken to in lines. It ends when its input does.
type talk struct {
	cmd *exec.Cmd
	to  io.WriteCloser
	by  *bufio.Reader
}

func startTalk(role string) (*talk, error) {
	cmd := child(role)
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	by, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &talk{cmd: cmd, to: to, by: bufio.NewReader(by)}, nil
}

// line is the next that the child says.
func (t *talk) line() (string, error) {
	line, err := t.by.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("a child of this program ended: %w", err)
	}
	return strings.TrimSpace(line), nil
}

func (t *talk) end() error {
	return errors.Join(t.to.Close(), t.cmd.Wait())
}
