package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

// The relays that mail goes into.
const (
	sandboxName = "sandbox"
	sinkName    = "smtp-sink"
)

// withSandbox starts the throw-away relay of mailgate dev in a process of its own.
func withSandbox(use func(addr string) error) error {
	t, err := startTalk(sandboxChild)
	if err != nil {
		return err
	}
	addr, err := t.line()
	if err == nil {
		err = use(addr)
	}
	return errors.Join(err, t.end())
}

// beSandbox says where the relay is and runs it until the input ends.
func beSandbox(until io.Reader, say io.Writer) error {
	box, err := sandbox.Start(sandbox.Options{})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(say, box.Addr()); err != nil {
		return errors.Join(err, box.Close())
	}
	_, err = io.Copy(io.Discard, until)
	return errors.Join(err, box.Close())
}

// postfixTool finds a program of Postfix. It is installed where not everybody's PATH
// leads.
func postfixTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name))
	}
	if err != nil {
		return "", fmt.Errorf("%s, a program of Postfix, is not installed", name)
	}
	return path, nil
}

// withSink starts Postfix's relay that throws everything away.
func withSink(use func(addr string) error) (err error) {
	path, err := postfixTool(sinkName)
	if err != nil {
		return err
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	args := []string{addr, "1000"}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...)
	}
	sink := exec.Command(path, args...)
	if err := sink.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, sink.Process.Kill())
		_ = sink.Wait() // it was killed, and says so
	}()
	if err := answering(addr); err != nil {
		return err
	}
	return use(addr)
}

// freeAddr is a free port of this machine.
func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// answering waits until somebody listens.
func answering(addr string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}
