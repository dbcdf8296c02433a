package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is the longest wait for a start, an answer or an end. None of them should come
// near it.
const patience = 30 * time.Second

// process is a running program that listens.
type process struct {
	addr  string
	ready time.Duration // from its start until it was ready
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// start starts a program that will listen at addr, and returns when ready says so. The process
// ends with the comparison.
func (b *bench) start(cmd *exec.Cmd, addr string, ready func(addr string) bool) *process {
	log := must(os.CreateTemp(b.dir, filepath.Base(cmd.Path)+"-*.log"))
	defer log.Close() // the process has a handle of its own
	p := &process{addr: addr, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	check(cmd.Start())
	b.later(p.stop)
	go func() {
		_ = cmd.Wait() // its log says why it ended
		close(p.ended)
	}()
	for !ready(addr) {
		select {
		case <-p.ended:
			check(fmt.Errorf("%s ended at once: %s", cmd, must(os.ReadFile(log.Name()))))
		case <-time.After(time.Millisecond):
		}
		if time.Since(began) > patience {
			check(fmt.Errorf("%s is not ready after %s: %s", cmd, patience, must(os.ReadFile(log.Name()))))
		}
	}
	p.ready = time.Since(began)
	return p
}

// stop lets the process end in its own way, and waits.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// listening says whether connections are accepted.
func listening(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	return err == nil && conn.Close() == nil
}

// healthy returns a check that asks a path for a 200.
func healthy(path string) func(addr string) bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	return func(addr string) bool {
		answer, err := client.Get("http://" + addr + path)
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}
}

// freeAddr returns an address of this machine at which nothing listens.
func freeAddr() (addr, port string) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	check(listener.Close())
	addr = listener.Addr().String()
	return addr, addr[strings.LastIndex(addr, ":")+1:]
}

// processor returns the processor time that the process has used, user and system.
func (p *process) processor() time.Duration {
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)))
	_, after, _ := strings.Cut(string(text), ") ") // what follows the name
	fields := strings.Fields(after)
	const tick = 10 * time.Millisecond // of all times in /proc
	return time.Duration(must(strconv.Atoi(fields[11]))+must(strconv.Atoi(fields[12]))) * tick
}

// memory returns the resident memory in megabytes.
func (p *process) memory() float64 {
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)))
	return must(strconv.ParseFloat(first(`VmRSS:\s*(\d+) kB`, text), 64)) / 1024
}

// build builds a program of a module once and returns its path.
func (b *bench) build(module, program string) (path string, err error) {
	path = filepath.Join(b.dir, filepath.Base(program))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := exec.CommandContext(b.ctx, "go", "build", "-C", module, "-trimpath", "-ldflags", "-s -w", "-o", path, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", program, err, text)
	}
	return path, nil
}

// startMailgate starts mailgate with its default settings and some more. It is built as it is
// shipped.
func (b *bench) startMailgate(relay string, settings ...string) *process {
	path := *mailgatePath
	if path == "" {
		path = must(b.build("..", "./cmd/mailgate"))
	}
	addr, _ := freeAddr()
	cmd := exec.CommandContext(b.ctx, path, "serve")
	cmd.Env = append([]string{
		"MAILGATE_LISTEN=" + addr,
		"MAILGATE_API_KEYS=bench:" + apiKey,
		"MAILGATE_SMTP_URL=smtp://" + relay + "?tls=none",
		"MAILGATE_FROM=Acme <no-reply@acme.example>",
	}, settings...)
	return b.start(cmd, addr, healthy("/readyz"))
}

// newDataDir returns the setting of a data directory that does not exist yet.
func (b *bench) newDataDir() (setting, dir string) {
	dir = filepath.Join(must(os.MkdirTemp(b.dir, "")), "data")
	return "MAILGATE_DATA_DIR=" + dir, dir
}

// startOwn starts a program of this module, which takes its address and more as arguments.
func (b *bench) startOwn(program string, args ...string) *process {
	addr, _ := freeAddr()
	return b.start(exec.CommandContext(b.ctx, must(b.build(".", program)), append([]string{addr}, args...)...), addr, listening)
}
