package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/redisstore/redistest"
)

var (
	errDial = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	errRead = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	errSlow = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
)

// What never left was not done. Of a script that is run again the first run counts: it may
// have been carried out before there was nobody to be asked.
func TestNeverLeft(t *testing.T) {
	for _, tt := range []struct {
		name   string
		runs   []error
		undone bool
	}{
		{"no connection", []error{errDial}, true},
		{"no connection to any sentinel", []error{fmt.Errorf("unreachable: %w", errors.Join(errDial, errDial))}, true},
		{"no server found", []error{unsent{errors.New("no nodes")}}, true},
		{"cut off", []error{errRead, errRead, errRead}, false},
		{"cut off, and then no connection", []error{errRead, errDial}, false},
		{"cut off, and then no server found", []error{io.EOF, unsent{errDial}}, false},
		{"not answered in time", []error{errSlow}, false},
		{"out of time", []error{context.DeadlineExceeded}, false},
		{"not confirmed, as there was no connection", []error{fmt.Errorf("%w: %w", errUnconfirmed, errDial)}, false},
	} {
		ran := 0
		run := func(context.Context, *Script, string, []any) (string, error) {
			ran++
			return "", tt.runs[ran-1]
		}
		_, err := new(redisClient).insist(context.Background(), run, nil, "key", nil)
		if Undone(err) != tt.undone || ran != len(tt.runs) {
			t.Errorf("%s: undone %v after %d runs", tt.name, Undone(err), ran)
		}
	}
}

// However Redis is set up, while nothing of it is there nothing is done.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	server.Kill()
	for scheme, path := range map[string]string{"redis": "", "redis+cluster": "", "redis+sentinel": "/main"} {
		for confirm := range 2 {
			store, err := Open(Options{URL: scheme + "://" + server.Addr + path, Timeout: 10 * time.Second, Confirm: confirm})
			if err != nil {
				t.Fatal(err)
			}
			script := NewScript(`return 'done'`, func(string) bool { return true })
			for name, ask := range map[string]func(Call) (string, error){
				"asked": func(c Call) (string, error) { return c.Ask(script) },
				"once":  func(c Call) (string, error) { return c.Once(script) },
			} {
				call, err := store.Begin(context.Background(), store.Prefix()+"key")
				if err != nil {
					t.Fatal(err)
				}
				if _, err = ask(call); err == nil || !Undone(err) {
					t.Errorf("%s, %d to confirm, %s: %v is no proof", scheme, confirm, name, err)
				}
				call.End()
			}
			store.Close()
		}
	}
}
