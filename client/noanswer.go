package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
)

// A NoAnswer is the error of a request that nobody answered. Unless NotAsked is set, what
// was asked for may have been done.
type NoAnswer struct {
	// NotAsked says that nobody was reached, and that no earlier attempt reached anybody
	// who may have done what was asked for.
	NotAsked bool
	// Err is the cause, for errors.Is and errors.As. Its message may quote what came over
	// the network, so it is not for logs.
	Err error
}

// Error says what happened, in words of ours.
func (e *NoAnswer) Error() string {
	if e.NotAsked {
		return "mailgate cannot be reached: " + reason(e.Err)
	}
	return "mailgate gave no answer: " + reason(e.Err)
}

// Unwrap gives the cause.
func (e *NoAnswer) Unwrap() error { return e.Err }

// noAnswer drops the URL, and the address in it, from an error of the HTTP client. Where
// the caller's context has ended, that is the cause. A request that was written was asked.
func noAnswer(caller context.Context, err error, written bool) *NoAnswer {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	op, ok := errors.AsType[*net.OpError](err)
	notAsked := ok && op.Op == "dial" && !written
	if ended := caller.Err(); ended != nil {
		err = ended
	}
	return &NoAnswer{NotAsked: notAsked, Err: err}
}

// reason is the cause in words that nobody else has put there: an error of the network may
// quote the other side, and that may quote what it was asked.
func reason(err error) string {
	var timeout interface{ Timeout() bool }
	var number syscall.Errno
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return "the caller gave up"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it took too long"
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &name):
		return "its name cannot be looked up"
	case errors.As(err, &certificate):
		return "its certificate is not trusted"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	return "the connection failed"
}

// interrupted is the error when the caller's context ended between two attempts: of the
// context's kind, and of the kind of what the last attempt ended with.
type interrupted struct{ over, last error }

func (e *interrupted) Error() string {
	return fmt.Sprintf("no more time to ask again after: %v", e.last)
}

func (e *interrupted) Unwrap() []error { return []error{e.over, e.last} }
