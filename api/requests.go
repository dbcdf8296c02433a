package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/mailgate/mailgate/api/front"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/recent"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/internal/wire"
	"github.com/mailgate/mailgate/throttle"
)

// isAbout notes the send that what follows is about.
func (s *Server) isAbout(r *request, send *delivery.Send) {
	if r.What != nil {
		s.noteEarlier(r)
	}
	r.Mailbox, r.Purpose, r.ID, r.Relay, r.Reply, r.Report = send.Mail.To, send.Traits.Purpose, throttle.ID{}, "", nil, report.Report{}
}

const (
	shownRequests = 100 // unless limit says otherwise
	mostRequests  = 500
	mostRefused   = 10
	mostNames     = 100

	// maxFollowing is how many clients may follow the requests. They are told of new ones every followPause,
	// and that they are connected every followBeat.
	maxFollowing = 16
	followPause  = 250 * time.Millisecond
	followBeat   = 5 * time.Second
	followWrite  = 10 * time.Second
)

// requestMembers are those by which requests are looked for.
var requestMembers = []string{"node", "mailbox", "outcome", "rule", "key", "door", "visitor", "request_id", "id"}

type requestsAnswer struct {
	AllNodes bool              `json:"all_nodes"`
	Requests []json.RawMessage `json:"requests"`
	Before   string            `json:"before,omitempty"` // of the ones that follow
}

// entries are a node's, or those of all nodes.
type entries interface {
	Next() uint64
	All(from, to uint64, f recent.Filter) iter.Seq[[]byte]
}

// kept returns what all nodes did, or this one alone if they share no Redis or that is away.
func (s *Server) kept(ctx context.Context, audited bool) (log entries, all bool) {
	own := &s.with.Ledger.Recent
	if audited {
		own = &s.with.Ledger.Audited
	}
	if s.with.Nodes == nil {
		return own, false
	}
	shared := &s.with.Nodes.Requests
	if audited {
		shared = &s.with.Nodes.Audits
	}
	if log, err := shared.Log(ctx); err == nil {
		return log, true
	}
	return own, false // the metrics and the log say that Redis is away
}

// ofAddress takes a step for requests that look for an address.
func ofAddress(next step) step {
	return func(r *request) error {
		if r.c.Query("email") == "" {
			return nil
		}
		return next(r)
	}
}

// listRequests handles GET /admin/requests.
func (s *Server) listRequests(r *request, _ *none) (any, error) {
	filter, err := s.requestFilter(r)
	if err != nil {
		return nil, err
	}
	audited, err := auditedAlone(r)
	if err != nil {
		return nil, err
	}
	limit, notLimit := strconv.Atoi(cmp.Or(r.c.Query("limit"), strconv.Itoa(shownRequests)))
	switch {
	case notLimit != nil || limit < 1 || limit > mostRequests:
		return nil, invalidFields(fieldProblem{"limit", "invalid", fmt.Sprintf("limit must be a number from 1 to %d.", mostRequests)})
	case filter.Before != "" && !positions.MatchString(filter.Before):
		return nil, invalidFields(fieldProblem{"before", "invalid", "before must be the before of an answer."})
	case r.c.Get(fiber.HeaderAccept) == "text/event-stream" && r.c.Method() == fiber.MethodGet:
		return nil, s.followRequests(r.c, audited, filter, limit)
	}
	log, all := s.kept(r.ctx, audited)
	found := recent.Newest(log.All(0, log.Next(), filter), limit)
	answer := requestsAnswer{AllNodes: all, Requests: make([]json.RawMessage, len(found))}
	for i, e := range found {
		answer.Requests[i] = e
	}
	if len(found) == limit {
		answer.Before = recent.Position(found[limit-1])
	}
	return answer, nil
}

// auditedAlone reads whether a query asks for the audit log.
func auditedAlone(r *request) (bool, error) {
	switch r.c.Query("audited") {
	case "":
		return false, nil
	case "true":
		return true, nil
	}
	return false, invalidFields(fieldProblem{"audited", "invalid", "audited must be true, or left out."})
}

// positions are those of a node's entries, and of all nodes'.
var positions = regexp.MustCompile(`^[0-9]{12}$|^[0-9]{4}-[-.:0-9A-Z]+\.[0-9]+-[0-9]+\.\S{1,300}$`)

// requestFilter reads the filter of a query. An address is looked for by its hash.
func (s *Server) requestFilter(r *request) (recent.Filter, error) {
	f := recent.Filter{Members: map[string]string{}, Before: strings.Clone(r.c.Query("before"))}
	for _, name := range requestMembers {
		f.Members[name] = strings.Clone(r.c.Query(name)) // it may be followed after the request
	}
	if email := r.c.Query("email"); email != "" {
		mailbox, err := parseAddress(email, s.with.Identity)
		if err != nil {
			return f, err
		}
		f.Members["mailbox"] = mailbox.Hash()
	}
	for name, to := range map[string]*string{"since": &f.Since, "until": &f.Until} {
		if text := r.c.Query(name); text != "" {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return f, invalidFields(fieldProblem{name, "invalid", name + " must be a time, such as 2026-11-20T12:00:00Z."})
			}
			*to = wire.Time(at.UnixMilli())
		}
	}
	return f, nil
}

// followRequests answers with server-sent events: the newest requests, oldest first, and then those that
// come, until the client leaves or the server shuts down. Of more than mostRequests at once it leaves out
// the oldest. An event says whose requests they are, and where that changes it begins anew.
func (s *Server) followRequests(c *fiber.Ctx, audited bool, f recent.Filter, limit int) error {
	if s.following.Add(1) > maxFollowing {
		s.following.Add(-1)
		return &problem{kind: busy, retryAfter: soon, detail: "Too many clients follow the requests already."}
	}
	conn := c.Context().Conn()
	c.Response().Header.SetContentType("text/event-stream")
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.following.Add(-1)
		from, most, last := uint64(0), limit, time.Time{}
		announced, ofAll := false, false
		for s.open.Err() == nil {
			ctx, cancel := context.WithTimeout(s.open, s.with.Health.StoreTimeout)
			log, all := s.kept(ctx, audited)
			cancel()
			if !announced || all != ofAll {
				announced, ofAll, from, most = true, all, 0, limit
				fmt.Fprintf(w, "event: all_nodes\ndata: %t\n\n", all)
			}
			to := log.Next()
			found := recent.Newest(log.All(from, to, f), most)
			for _, e := range slices.Backward(found) {
				fmt.Fprintf(w, "data: %s\n\n", e)
			}
			if len(found) > 0 || time.Since(last) > followBeat {
				last = time.Now()
				_, _ = w.WriteString(":\n\n")
				_ = conn.SetWriteDeadline(last.Add(followWrite)) // that of the answer would end it
				if w.Flush() != nil {
					return
				}
			}
			from, most = to, mostRequests
			front.Pause(s.open, followPause)
		}
	})
	return nil
}

type refusedAnswer struct {
	AllNodes  bool           `json:"all_nodes"`
	Since     string         `json:"since"`
	Mailboxes []recent.Count `json:"mailboxes"`
	Visitors  []recent.Count `json:"visitors"`
	Keys      []recent.Count `json:"keys"`
}

// countRefused handles GET /admin/requests/refused: who was refused most in the last hour.
func (s *Server) countRefused(r *request, _ *none) (any, error) {
	since := wire.Time(s.with.Now() - time.Hour.Milliseconds())
	log, all := s.kept(r.ctx, false)
	refused := log.All(0, log.Next(), recent.Filter{Since: since, Members: map[string]string{"outcome": ledger.Limited.Word}})
	most := recent.Most(refused, mostRefused, "mailbox", "visitor", "key")
	return refusedAnswer{all, since, most["mailbox"], most["visitor"], most["key"]}, nil
}

type namesAnswer struct {
	AllNodes bool           `json:"all_nodes"`
	Outcomes []recent.Count `json:"outcomes"`
	Rules    []recent.Count `json:"rules"`
	Keys     []recent.Count `json:"keys"`
	Doors    []recent.Count `json:"doors"`
	Nodes    []recent.Count `json:"nodes"`
}

// countNames handles GET /admin/requests/names: what a filter can be set to, and how many requests it would find.
func (s *Server) countNames(r *request, _ *none) (any, error) {
	audited, err := auditedAlone(r)
	if err != nil {
		return nil, err
	}
	log, all := s.kept(r.ctx, audited)
	of := recent.Most(log.All(0, log.Next(), recent.Filter{}), mostNames, "outcome", "rule", "key", "door", "node")
	return namesAnswer{all, of["outcome"], of["rule"], of["key"], of["door"], of["node"]}, nil
}
