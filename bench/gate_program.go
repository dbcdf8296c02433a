package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// withProgram builds mailgate as it is shipped, in a directory of its own.
func withProgram(use func(binary, dir string) error) error {
	return withDir(func(dir string) error {
		binary := filepath.Join(dir, "mailgate")
		build := exec.Command("go", "build", "-C", "..", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/mailgate")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building mailgate: %w: %s", err, out)
		}
		return use(binary, dir)
	})
}

// A program is mailgate serve as a process, with its default settings. It logs to a
// file.
type program struct {
	addr   string
	ready  time.Duration // from exec to the first 200 of /readyz
	pid    string
	cmd    *exec.Cmd
	exited chan error
}

// withRunning runs the program on a data directory for as long as use runs.
func withRunning(binary, data, relay string, use func(*program) error) error {
	p, err := startProgram(binary, data, relay)
	if err != nil {
		return err
	}
	return errors.Join(use(p), p.stop())
}

func startProgram(binary, data, relay string) (*program, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(data + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close() // the program has its own handle
	p := &program{addr: addr, cmd: exec.Command(binary, "serve"), exited: make(chan error, 1)}
	p.cmd.Stderr = log
	p.cmd.Env = []string{
		"MAILGATE_LISTEN=" + addr,
		"MAILGATE_DATA_DIR=" + data,
		"MAILGATE_API_KEYS=app:" + apiKey,
		"MAILGATE_SMTP_URL=smtp://" + relay + "?tls=none",
		"MAILGATE_FROM=Acme <no-reply@acme.example>",
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.pid = fmt.Sprint(p.cmd.Process.Pid)
	go func() { p.exited <- p.cmd.Wait() }()
	if err := p.await(); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.ready = time.Since(began)
	return p, nil
}

// await asks /readyz every millisecond until it says 200.
func (p *program) await() error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		answer, err := client.Get("http://" + p.addr + "/readyz")
		if err != nil {
			continue
		}
		_, err = io.Copy(io.Discard, answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return err
		}
		if answer.StatusCode == http.StatusOK {
			return nil
		}
	}
	return errors.New("mailgate does not become ready")
}

// stop ends the program in good order.
func (p *program) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.exited:
		return err
	case <-time.After(10 * time.Second):
		return errors.Join(errors.New("mailgate does not end"), p.cmd.Process.Kill(), <-p.exited)
	}
}
