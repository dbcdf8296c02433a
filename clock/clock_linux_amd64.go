package clock

import (
	"syscall"
	"time"
)

// Now is the machine's clock, in milliseconds since 1970.
//
// time.Now reads two clocks, this one and one that only goes forward. Here this one is
// read alone, which takes half as long: the kernel's own page in the process answers, to
// the microsecond. Package syscall has the kernel's code run on the goroutine's stack, where
// time.Now takes another: a kernel that probes its stack by a page, as hardened ones of 2017
// did, needs the longer way of clock_other.go. It is not the clock that testing/synctest
// makes up; a test hands in its own.
func Now() int64 {
	var at syscall.Timeval
	if err := syscall.Gettimeofday(&at); err != nil {
		return time.Now().UnixMilli()
	}
	return at.Sec*1000 + at.Usec/1000
}
