// Command mailgate is a service in front of SMTP that prevents abuse of "send me a code"
// forms.
//
//	mailgate dev       try it: everything in one process, nothing to set up
//	mailgate serve     run it
//	mailgate --help    the other commands, and every setting
//
// Package config reads and checks the settings; program.go wires the parts and gives each
// plain values.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// main runs the program. The first SIGTERM or interrupt asks for an orderly shutdown, the
// second ends the process at once.
func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(150) // the live heap is small, so collecting it often costs more than memory does
	}
	keepInMemory()
	keepPrivate()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
