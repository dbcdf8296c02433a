// Command mailgate is the service in front of SMTP that stops abuse of "send me a
// code" forms.
//
//	mailgate dev      try it: everything in one process, nothing to set up
//	mailgate serve    run it
//	mailgate help     the other commands, and every setting
//
// Settings are read and checked in the package settings and go no further than this
// one: program.go puts the parts together and hands each the plain values it needs.
package main
