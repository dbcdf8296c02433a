package api

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
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

	// maxFollowing is how many clients may follow the requests. They are told of new ones every followPause,
	// and that they are connected every followBeat.
	maxFollowing = 16
	followPause  = 250 * time.Millisecond
	followBeat   = 5 * time.Second
	followWrite  = 10 * time.Second
)

// requestMembers are those by which requests are looked for.
var requestMembers = []string{"mailbox", "outcome", "rule", "key", "door", "visitor", "request_id", "id"}

type requestsAnswer struct {
	Requests []shownRequest `json:"requests"`
	Before   *uint64        `json:"before,omitempty"` // of the ones that follow
}

// shownRequest is an entry with its number.
type shownRequest recent.Entry

// MarshalJSON implements json.Marshaler.
func (r shownRequest) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"number":%d,%s`, r.Number, r.Text[1:]), nil
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
	log, audited := &s.with.Ledger.Recent, r.c.Query("audited")
	if audited == "true" {
		log = &s.with.Ledger.Audited
	}
	limit, notLimit := strconv.Atoi(cmp.Or(r.c.Query("limit"), strconv.Itoa(shownRequests)))
	before, notNumber := strconv.ParseUint(cmp.Or(r.c.Query("before"), strconv.Itoa(math.MaxInt64)), 10, 63)
	switch {
	case notLimit != nil || limit < 1 || limit > mostRequests:
		return nil, invalidFields([]fieldProblem{{"limit", "invalid", fmt.Sprintf("limit must be a number from 1 to %d.", mostRequests)}})
	case audited != "" && audited != "true":
		return nil, invalidFields([]fieldProblem{{"audited", "invalid", "audited must be true, or left out."}})
	case notNumber != nil:
		return nil, invalidFields([]fieldProblem{{"before", "invalid", "before must be the before of an answer."}})
	case r.c.Get(fiber.HeaderAccept) == "text/event-stream" && r.c.Method() == fiber.MethodGet:
		return written{}, s.followRequests(r.c, log, filter, limit)
	}
	found := log.Newest(0, before, filter, limit)
	answer := requestsAnswer{Requests: make([]shownRequest, len(found))}
	for i, e := range found {
		answer.Requests[i] = shownRequest(e)
	}
	if len(found) == limit {
		answer.Before = &found[limit-1].Number
	}
	return answer, nil
}

// requestFilter reads the filter of a query. An address is looked for by its hash.
func (s *Server) requestFilter(r *request) (recent.Filter, error) {
	f := recent.Filter{Members: map[string]string{}}
	for _, name := range requestMembers {
		f.Members[name] = strings.Clone(r.c.Query(name)) // it may be followed after the request
	}
	if email := r.c.Query("email"); email != "" {
		read := parseEmail(email, s.with.Identity)
		if read.refused != "" {
			return f, invalidFields([]fieldProblem{addressProblem("email", read.refused)})
		}
		f.Members["mailbox"] = read.Hash()
	}
	for name, to := range map[string]*string{"since": &f.Since, "until": &f.Until} {
		if text := r.c.Query(name); text != "" {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return f, invalidFields([]fieldProblem{{name, "invalid", name + " must be a time, such as 2026-11-20T12:00:00Z."}})
			}
			*to = wire.Time(at.UnixMilli())
		}
	}
	return f, nil
}

// followRequests answers with server-sent events: the newest requests, oldest first, and then those that
// come, until the client leaves or the server shuts down. Of more than mostRequests at once it leaves out
// the oldest.
func (s *Server) followRequests(c *fiber.Ctx, log *recent.Log, f recent.Filter, limit int) error {
	if s.following.Add(1) > maxFollowing {
		s.following.Add(-1)
		return &problem{kind: busy, retryAfter: soon, detail: "Too many clients follow the requests already."}
	}
	conn := c.Context().Conn()
	c.Response().Header.SetContentType("text/event-stream")
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.following.Add(-1)
		from, last := uint64(0), time.Time{}
		for s.open.Err() == nil {
			to := log.Next()
			found := log.Newest(from, to, f, limit)
			for _, e := range slices.Backward(found) {
				text, _ := shownRequest(e).MarshalJSON() // never fails
				fmt.Fprintf(w, "data: %s\n\n", text)
			}
			if len(found) > 0 || time.Since(last) > followBeat {
				last = time.Now()
				_, _ = w.WriteString(":\n\n")
				_ = conn.SetWriteDeadline(last.Add(followWrite)) // that of the answer would end it
				if w.Flush() != nil {
					return
				}
			}
			from, limit = to, mostRequests
			front.Pause(s.open, followPause)
		}
	})
	return nil
}

type refusedAnswer struct {
	Since     string         `json:"since"`
	Mailboxes []recent.Count `json:"mailboxes"`
	Visitors  []recent.Count `json:"visitors"`
	Keys      []recent.Count `json:"keys"`
}

// countRefused handles GET /admin/requests/refused: who was refused most in the last hour.
func (s *Server) countRefused(_ *request, _ *none) (any, error) {
	since := wire.Time(s.with.Now() - time.Hour.Milliseconds())
	most := s.with.Ledger.Recent.Most(recent.Filter{Since: since, Members: map[string]string{"outcome": ledger.Limited.Word}}, mostRefused, "mailbox", "visitor", "key")
	return refusedAnswer{since, most["mailbox"], most["visitor"], most["key"]}, nil
}
