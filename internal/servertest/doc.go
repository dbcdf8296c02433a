// Package servertest helps tests with real servers, such as those of redistest and mailtest:
// ports, certificates, processes to kill, disks to fill, and waits for a condition.
package servertest
