package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/wire"
)

// figures is what the console shows, as JSON: those of this server, or the sums of all nodes. Totals count from a server's
// start and are read from the metrics, so that the two cannot differ.
type figures struct {
	AllNodes   bool           `json:"all_nodes"`
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
	Nodes      []nodeFigures  `json:"nodes"`
}

// nodeFigures is the state of a node.
type nodeFigures struct {
	Node         string `json:"node"`
	Version      string `json:"version"`
	Since        string `json:"since"`
	Told         string `json:"told"` // when it did for the last time
	Away         bool   `json:"away"` // it is silent
	Ready        bool   `json:"ready"`
	Degraded     string `json:"degraded_since,omitempty"`
	Failing      int    `json:"relays_failing"`
	Waiting      int    `json:"waiting"`           // for a relay
	Suppressions string `json:"suppressions_read"` // when the list was read
}

// silence is for how many milliseconds a node is silent before it is away.
const silence = 15_000

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
func (s *Server) showFigures(r *request, _ *none) (any, error) {
	sum, err := s.figures()
	if err != nil || s.with.Nodes == nil {
		return sum, err
	}
	all, err := s.with.Nodes.All(r.ctx)
	if err != nil {
		return sum, nil // all_nodes is false
	}
	sum.AllNodes = true
	for _, entry := range all {
		var f figures
		if entry.Node == s.with.Nodes.Name() || json.Unmarshal(entry.Text, &f) != nil || len(f.Nodes) != 1 {
			continue
		}
		then := s.with.Now() - entry.Ago
		f.Nodes[0].Node, f.Nodes[0].Told, f.Nodes[0].Away = entry.Node, wire.Time(then), entry.Ago > silence
		sum.add(f, s.with.Now(), then)
	}
	return sum, nil
}

// add adds the figures that another node had at a time.
func (f *figures) add(of figures, now, then int64) {
	f.Since = min(f.Since, of.Since)
	for outcome, n := range of.Sends {
		f.Sends[outcome] += n
	}
	f.Refused = add(f.Refused, of.Refused...)
	f.Shadow = add(f.Shadow, of.Shadow...)
	f.Refunds += of.Refunds
	f.Resets += of.Resets
	f.LastHour.Add(of.LastHour, now, then)
	f.Nodes = append(f.Nodes, of.Nodes...)
	if !of.Nodes[0].Away {
		f.Relays = append(f.Relays, of.Relays...)
	}
}

// Continue has the chart of the last hour go on from what this node told before it was started again.
func (s *Server) Continue(ctx context.Context) error {
	all, err := s.with.Nodes.All(ctx)
	for _, entry := range all {
		var f figures
		if entry.Node == s.with.Nodes.Name() && json.Unmarshal(entry.Text, &f) == nil {
			s.with.Ledger.Hour.Continue(f.LastHour, s.with.Now()-entry.Ago)
		}
	}
	return err
}

// Figures returns what other nodes' operators see of this one.
func (s *Server) Figures() []byte {
	f, err := s.figures()
	if err != nil {
		s.with.Log.Error("the figures cannot be gathered", "error", err)
	}
	return wire.Encode(f)
}

// figures returns those of this server.
func (s *Server) figures() (figures, error) {
	f := figures{
		ServerTime: wire.Time(s.with.Now()), Since: wire.Time(s.began), Ready: s.checkReady() == nil,
		Sends: map[string]int{}, Refused: []refusedBy{}, Shadow: []refusedBy{}, Relays: []relayFigures{}, LastHour: s.with.Ledger.Hour.Rates(s.with.Now()),
	}
	if since, _ := s.with.Health.Degraded(); since != 0 {
		f.Degraded = wire.Time(since)
	}
	families, err := s.with.Metrics.Gather()
	if err != nil {
		return f, fmt.Errorf("gathering the figures: %w", err)
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
	own := nodeFigures{Version: s.with.Docs.Version, Since: f.Since, Told: f.ServerTime, Ready: f.Ready, Degraded: f.Degraded}
	if s.with.Nodes != nil {
		own.Node = s.with.Nodes.Name()
	}
	if at := s.with.Suppressions.ReadAt(); at > 0 {
		own.Suppressions = wire.Time(at)
	}
	for _, relay := range s.with.Health.RelayStats() {
		f.Relays = append(f.Relays, relayFigures{relay.Idle, relay.Open - relay.Idle, relay.Waiting, relay.CircuitOpen})
		own.Waiting += relay.Waiting
		if relay.CircuitOpen {
			own.Failing++
		}
	}
	f.Nodes = []nodeFigures{own}
	return f, nil
}

// add adds counts to those of the same limits at other doors or nodes.
func add(all []refusedBy, more ...refusedBy) []refusedBy {
	for _, one := range more {
		i := slices.IndexFunc(all, func(a refusedBy) bool { return a.Rule == one.Rule && a.Limit == one.Limit })
		if i < 0 {
			all = append(all, one)
		} else {
			all[i].Count += one.Count
		}
	}
	return all
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
