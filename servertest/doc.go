// Package servertest is what packages share that give tests a real server, such as
// redistest and mailtest, or a process to kill: a port of its own, certificates, and a wait
// until something is so.
package servertest
