package api

import (
	"fmt"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/wire"
)

// figures is what the console shows, as JSON. Totals count from the server's start and are read
// from the metrics, so that the two cannot differ.
type figures struct {
	ServerTime string         `json:"server_time"`
	Since      string         `json:"since"`
	Ready      bool           `json:"ready"`
	Degraded   string         `json:"degraded_since,omitempty"` // since when the shared storage is away
	Sends      map[string]int `json:"sends"`                    // by outcome; those refused are in refused
	Refused    []refusedBy    `json:"refused"`
	Shadow     []refusedBy    `json:"shadow_refused"`
	Refunds    int            `json:"refunds"`
	Resets     int            `json:"resets"`
	Relays     []relayFigures `json:"relays"`
	LastHour   ledger.Rates   `json:"last_hour"`
}

// refusedBy is how many sends a limit of a rule refused.
type refusedBy struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"`
	Count int    `json:"count"`
}

// relayFigures is the state of a relay, without its address, which only the metrics have.
type relayFigures struct {
	Idle        int  `json:"idle"`
	Busy        int  `json:"busy"`
	Waiting     int  `json:"waiting"`
	CircuitOpen bool `json:"circuit_open"`
}

// showFigures handles GET /admin/figures.
func (s *Server) showFigures(_ *request, _ *none) (any, error) {
	f := figures{
		ServerTime: wire.Time(s.with.Now()), Since: wire.Time(s.began), Ready: s.checkReady() == nil,
		Sends: map[string]int{}, Refused: []refusedBy{}, Shadow: []refusedBy{}, Relays: []relayFigures{}, LastHour: s.with.Ledger.Hour.Rates(s.with.Now()),
	}
	if since := s.with.DegradedSince(); since != 0 {
		f.Degraded = wire.Time(since)
	}
	families, err := s.with.Metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering the figures: %w", err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			f.count(family.GetName(), labels, int(metric.GetCounter().GetValue()))
		}
	}
	for _, relay := range s.with.RelayStats() {
		f.Relays = append(f.Relays, relayFigures{relay.Idle, relay.Open - relay.Idle, relay.Waiting, relay.CircuitOpen})
	}
	return f, nil
}

// add adds a count to that of the same limit at another door.
func add(all []refusedBy, one refusedBy) []refusedBy {
	for i := range all {
		if all[i].Rule == one.Rule && all[i].Limit == one.Limit {
			all[i].Count += one.Count
			return all
		}
	}
	return append(all, one)
}

// count adds a counter to the figures, if it is one of theirs.
func (f *figures) count(metric string, labels map[string]string, n int) {
	refused := refusedBy{labels["rule"], labels["limit"], n}
	switch {
	case metric == "mailgate_sends_total" && refused.Rule != "":
		f.Refused = add(f.Refused, refused)
	case metric == "mailgate_sends_total" && n > 0:
		f.Sends[labels["outcome"]] += n
	case metric == "mailgate_shadow_refusals_total":
		f.Shadow = add(f.Shadow, refused)
	case metric == "mailgate_refunds_total" && labels["result"] == delivery.RefundDone:
		f.Refunds += n
	case metric == "mailgate_resets_total":
		f.Resets += n
	}
}
