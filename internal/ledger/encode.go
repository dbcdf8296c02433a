package ledger

import (
	"cmp"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/recovered"
	"github.com/mailgate/mailgate/internal/wire"
)

// encoding is an outcome as the members of an object, each with a comma before it. Their order says who may see them:
// first the log alone, then the log and the operator's service, then the service alone, and last operators alone.
type encoding struct {
	text                     wire.Object
	shared, service, private int // where the parts behind the first begin

	whole []byte // of a line
}

var encodings = sync.Pool{New: func() any { return new(encoding) }}

// longest is how many bytes of a text are written.
const longest = 1000

func (e *encoding) encode(o *Outcome) {
	e.text = append(e.text[:0], ',') // which has the first member begin with a comma
	e.add("route", o.Route)
	if o.Status != 0 {
		e.text.Int("status", int64(o.Status))
	}
	e.add("enhanced", o.Enhanced)
	if !o.Began.IsZero() {
		e.text.Float("ms", float64(time.Since(o.Began).Microseconds())/1000)
	}
	if o.From.IsValid() {
		e.text.Addr("from", o.From)
	}
	if o.What != nil {
		e.add("outcome", o.What.Word)
	}
	e.add("action", o.Action)
	e.add("subject", o.Subject)
	if o.Replayed {
		e.text.Bool("replayed", true)
	}
	if o.Cause != nil {
		e.add("cause", o.Cause.Error())
	}

	e.shared = len(e.text)
	e.add("door", o.Door)
	e.add("request_id", o.RequestID)
	e.add("trace_id", o.TraceID)
	e.add("key", o.Key)
	e.add("problem", o.Problem)
	if !o.Mailbox.IsZero() {
		e.add("mailbox", o.Mailbox.Hash())
	}
	if o.ID.Valid() {
		e.add("id", o.ID.String())
	}
	o.Report.AppendLog(&e.text)

	e.service = len(e.text)
	e.add("purpose", o.Purpose)
	e.add("reason", o.Reason)
	e.add("source", o.Source)
	e.add("relay", o.Relay)
	if o.Reply != nil {
		reply := o.Reply.Masked(o.Mailbox)
		if o.Code != "" {
			reply = strings.ReplaceAll(reply, o.Code, "…")
		}
		e.add("reply", reply)
	}

	e.private = len(e.text)
	if o.What == nil {
		e.add("outcome", o.Problem)
	}
	e.add("visitor", network.Visitor(o.Visitor))
	o.Report.AppendSaid(&e.text)
	for _, of := range o.Cleared {
		e.text.Int(of.Name, int64(of.Count))
	}
}

// add adds a member that is not empty.
func (e *encoding) add(name, value string) {
	if len(value) > longest {
		value = value[:longest] + "…"
	}
	if value != "" {
		e.text.String(name, value)
	}
}

// line returns the line of the log. A panic has its stack there alone.
func (e *encoding) line(o *Outcome) []byte {
	line := wire.Object(e.whole[:0])
	line.Now(slog.TimeKey)
	line.String(slog.LevelKey, o.Level.String())
	line.String(slog.MessageKey, message[o.Door == SMTP])
	line = append(line, e.text[1:e.service]...)
	if broken, ok := errors.AsType[recovered.Error](o.Cause); ok {
		line.String("stack", cmp.Or(broken.Stack, "unknown"))
	}
	e.whole = append(line.End(), '\n')
	return e.whole
}

// message is that of a line at the SMTP door, and over HTTP.
var message = map[bool]string{true: "submission", false: "request"}
