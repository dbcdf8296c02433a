package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// main hands the process over to Run. The first SIGTERM or interrupt asks for an
// orderly end, the second ends the process at once.
func main() {
	collectEarly()
	keepPrivate()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// collectEarly keeps the heap within one and a half times of what is in use. A write to
// a disk of a million mailboxes costs no more for it, and the process stays a third
// smaller. GOGC, if set, has its way.
func collectEarly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
