// Package ledger has what became of each email, check of a code, action and change of a mailbox, at every door. It is one
// typed Outcome, which Note writes to the log, counts, keeps for operators, and sends to their service.
package ledger

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/mailgate/mailgate/internal/events"
	"github.com/mailgate/mailgate/internal/recent"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/rules"
)

// The doors that are no hooks.
const (
	HTTP = "http"
	SMTP = "smtp"
)

// Outcome is what became of one email, of a check of a code, of an action or of a mailbox. What is empty is not
// written.
type Outcome struct {
	What  *What // nil for a request that was about none of these
	Door  string
	Route string // over HTTP
	Key   string // the name of the key that opened the door, or of the hook

	RequestID string
	Began     time.Time
	From      netip.Addr // of the connection
	Visitor   netip.Addr // that the caller sends for
	Span      trace.Span // ended by Note
	TraceID   string     // that of Span, if empty

	Mailbox address.Address
	Purpose string
	Action  string
	Subject string // of an action or a rule, as a hash
	ID      throttle.ID

	Status   int
	Enhanced string // status, by SMTP
	Problem  string
	Report   report.Report
	Replayed bool // the answer is that to an earlier request
	Level    slog.Level
	Unlogged bool  // it has no line
	Cause    error // of a problem, or what came of a bounce

	Relay          string
	Reply          *relay.Reply
	Code           string // in the email, which no reply shows
	Reason, Source string // of a suppression, a bounce or a reset
	Cleared        []Cleared
}

// Cleared is how many of a kind a reset cleared.
type Cleared struct {
	Name  string
	Count int
}

// Log takes the lines of outcomes.
type Log interface {
	Enabled(slog.Level) bool
	// Line writes a line, an object of JSON that ends with a line feed. It keeps neither.
	Line(o *Outcome, line []byte)
}

// Options are what New needs.
type Options struct {
	Log     Log
	Notes   *slog.Logger   // what shadow rules would have refused
	Events  *events.Events // may be nil
	Metrics prometheus.Registerer
	Doors   []string // whose figures begin at zero
	Now     func() int64
}

// Ledger notes outcomes. It may be used by any number of goroutines.
type Ledger struct {
	with Options
	// Recent has the last outcomes, for operators, and Audited what operators did, which no flood of outcomes drives out.
	Recent, Audited recent.Log
	Hour            Hour

	sends, shadows, codes, actions *prometheus.CounterVec
	resets                         prometheus.Counter
}

// New makes a Ledger.
func New(o Options) *Ledger {
	with := promauto.With(o.Metrics)
	l := &Ledger{
		with: o,
		sends: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_sends_total", Help: "Send requests by outcome; rule and limit name what refused them."}, []string{"door", "outcome", "rule", "limit"}),
		shadows: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_shadow_refusals_total", Help: "Admitted sends that a shadow rule would have refused."}, []string{"door", "rule", "limit"}),
		actions: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_actions_total", Help: "Takes of actions by outcome; limit names what refused them."}, []string{"action", "outcome", "limit"}),
		codes: with.NewCounterVec(prometheus.CounterOpts{
			Name: "mailgate_codes_checked_total", Help: "Code checks by result."}, []string{"result"}),
		resets: with.NewCounter(prometheus.CounterOpts{
			Name: "mailgate_resets_total", Help: "Resets by operators: of mailboxes, and of subjects of actions and rules."}),
	}
	for _, door := range o.Doors { // Prometheus sees no increase in a series that begins with its first count
		for _, what := range Table {
			if what.counted == sends && what.by == none {
				l.sends.WithLabelValues(door, what.Word, "", "")
			}
		}
	}
	return l
}

// logged is the purpose of the key of hashes of mailboxes.
const logged = "mailgate api: mailboxes in logs, version 1"

// Names returns an Identity whose addresses are logged as hashes that need the secret.
func Names(identity address.Identity, of []byte) (address.Identity, error) {
	key, err := secret.Key(of, logged)
	if err != nil {
		return identity, err
	}
	return identity.WithLogKey([32]byte(key)), nil
}

// Note counts an outcome, ends its span, writes its line, keeps it for operators and tells their service.
func (l *Ledger) Note(o *Outcome) {
	l.count(o)
	o.endSpan()
	line := !o.Unlogged && l.with.Log.Enabled(o.Level)
	// An attempt that names a mailbox is kept as well.
	kept := o.What != nil && o.What != WrongKey || o.Problem != "" && !o.Mailbox.IsZero()
	if !line && !kept {
		return
	}
	e := encodings.Get().(*encoding)
	defer encodings.Put(e)
	e.encode(o)
	if line {
		l.with.Log.Line(o, e.line(o))
	}
	if kept {
		now := l.with.Now()
		l.Recent.Add(now, e.text[1:])
		if o.What != nil && o.What.Event != "" && !o.Mailbox.IsZero() {
			l.with.Events.Note(now, o.What.Event, o.Mailbox, e.text[e.shared:e.private])
		}
	}
}

func (l *Ledger) count(o *Outcome) {
	what := o.What
	if what == nil {
		return
	}
	rule, limit := "", ""
	if what.by != none {
		rule = o.Report.Rule
	}
	if what.by == byLimit {
		limit = o.Report.Limit
	}
	switch what.counted {
	case sends:
		l.sends.WithLabelValues(o.Door, what.Word, rule, limit).Inc()
		l.Hour.count(l.with.Now(), what.hour)
	case codes:
		l.codes.WithLabelValues(what.Word).Inc()
	case actions:
		l.actions.WithLabelValues(o.Action, what.Word, limit).Inc()
	case resets:
		l.resets.Inc()
	}
}

func (o *Outcome) endSpan() {
	if o.Span.On() {
		o.Span.Set("door", o.Door)
		o.Span.Set("problem", o.Problem)
		o.Span.Set("rule", o.Report.Rule)
		o.Span.Set("limit", o.Report.Limit)
		o.Span.Set("status", strconv.Itoa(o.Status))
	}
	word := ""
	if o.What != nil {
		word = o.What.Word
	}
	o.Span.End(word)
	o.TraceID = cmp.Or(o.TraceID, o.Span.TraceID())
}

// Shadows logs and counts the shadow rules that would have refused a send.
func (l *Ledger) Shadows(door, requestID string, to address.Address, d *rules.Decision) {
	for _, refusal := range d.Shadow {
		attrs := []slog.Attr{slog.String("request_id", requestID), slog.String("mailbox", to.Hash()), slog.String("rule", refusal.Rule)}
		if refusal.Err != nil {
			l.with.Notes.LogAttrs(context.Background(), slog.LevelWarn, "a shadow rule cannot be asked", append(attrs, slog.String("cause", refusal.Err.Error()))...)
			continue
		}
		l.shadows.WithLabelValues(door, refusal.Rule, refusal.Verdict.Limit).Inc()
		l.with.Notes.LogAttrs(context.Background(), slog.LevelInfo, "a shadow rule would have refused",
			append(attrs, slog.String("limit", refusal.Verdict.Limit), slog.Int64("wait_ms", refusal.Verdict.RetryAt-refusal.Verdict.Now))...)
	}
}
