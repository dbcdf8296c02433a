package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker when a release is built.
var version string

// currentVersion is the linker's, or what the go command knows of the source.
func currentVersion() string {
	known := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		known = info.Main.Version
	}
	return cmp.Or(version, known, "unversioned")
}

func versionCommand() command {
	return command{
		name:    "version",
		summary: "print the version",
		teaches: "Prints the version, and the Go release and the platform it was built with and for.\nThe same as --version and -v.",
		run: func(_ context.Context, c call) error {
			if err := c.expect(c.args); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.stdout, "mailgate %s %s %s/%s\n", currentVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
