// Package servertest is what packages share that give tests a real server, such as
// redistest and mailtest, a process to kill or a disk to fill: a port of its own, certificates,
// and a wait until something is so.
package servertest
