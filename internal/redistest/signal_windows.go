package redistest

import "syscall"

// No process can be sent these.
const stopped, continued = syscall.Signal(19), syscall.Signal(18)
