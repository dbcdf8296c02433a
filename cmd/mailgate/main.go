package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// main hands the process over to Run. The first SIGTERM or interrupt asks for an
// orderly end, the second ends the process at once.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
