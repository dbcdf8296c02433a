//go:build !unix

package main

// keepPrivate does nothing where files have no modes: who may read one is decided by the
// directory that it is in.
func keepPrivate() {}

// openToOthers is not known by a mode here.
func openToOthers(string) bool { return false }

// syncDir does nothing where a directory cannot be written out by itself.
func syncDir(string) error { return nil }
