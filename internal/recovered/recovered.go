// Package recovered makes errors of panics.
package recovered

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// Error is a panic. Its text leaves out the value of the panic, which may hold anything, unless that
// is an error of the runtime. The stack is for the log.
type Error struct {
	error
	Stack string
}

// LogValue implements slog.LogValuer.
func (e Error) LogValue() slog.Value {
	return slog.GroupValue(slog.String("error", e.Error()), slog.String("stack", e.Stack))
}

// Into recovers a panic and makes it the error of a function that defers this.
func Into(err *error) {
	if value := recover(); value != nil {
		*err = From(value)
	}
}

// From returns the error of a value that recover returned, with the stack of the panic. An Error that was passed on
// to another goroutine keeps its own.
func From(value any) error {
	if known, ok := value.(Error); ok {
		return known
	}
	err := fmt.Errorf("panic of a %T", value)
	if known, ok := value.(runtime.Error); ok {
		err = fmt.Errorf("panic: %w", known)
	}
	return Error{err, string(debug.Stack())}
}

// Call calls do, in a goroutine where a panic is a failure of what it does, and logs a panic.
func Call(log *slog.Logger, do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = From(value)
			log.Error("internal error", "cause", err)
		}
	}()
	return do()
}
