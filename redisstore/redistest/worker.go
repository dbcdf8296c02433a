package redistest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// workerURL tells a test's binary that it is a worker, and on which servers.
const workerURL = "MAILGATE_TEST_WORKER_REDIS"

// Main is a TestMain that lets the binary be one of several processes on the same
// servers: as a Worker it does the work, and reads its orders from standard input.
func Main(m *testing.M, work func(url string) error) {
	url := os.Getenv(workerURL)
	if url == "" {
		os.Exit(m.Run())
	}
	if err := work(url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A Worker is a process that runs the test's own binary, of which Main is the TestMain.
type Worker struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// StartWorker starts one. It ends with the test.
func StartWorker(t testing.TB, url string) *Worker {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerURL+"="+url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &Worker{t, cmd, in, bufio.NewScanner(out)}
}

// StartWorkers starts so many.
func StartWorkers(t testing.TB, url string, many int) (all []*Worker) {
	t.Helper()
	for range many {
		all = append(all, StartWorker(t, url))
	}
	return all
}

// Order writes a line to the worker.
func (w *Worker) Order(words ...any) { fmt.Fprintln(w.in, words...) }

// Answer is the worker's next line.
func (w *Worker) Answer() string {
	w.t.Helper()
	if !w.out.Scan() {
		w.t.Fatal("a worker died")
	}
	return w.out.Text()
}

// Kill ends the worker at once, as kill -9 does.
func (w *Worker) Kill() {
	w.t.Helper()
	if err := w.cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	w.cmd.Wait()
}
