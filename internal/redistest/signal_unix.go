//go:build unix

package redistest

import "syscall"

const stopped, continued = syscall.SIGSTOP, syscall.SIGCONT
