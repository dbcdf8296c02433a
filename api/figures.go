package api

import (
	"fmt"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/wire"
	"github.com/mailgate/mailgate/delivery"
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
	GivenBack  int            `json:"given_back"`
	Resets     int            `json:"resets"`
	Relays     []relayFigures `json:"relays"`
	LastHour   rates          `json:"last_hour"`
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

// sample is one metric's value and labels.
type sample struct {
	labels map[string]string
	value  int
}

// showFigures is GET /admin/figures.
func (s *Server) showFigures(c *fiber.Ctx) error {
	samples, err := s.samples()
	if err != nil {
		return err
	}
	f := figures{
		ServerTime: wire.Time(s.with.Now()), Since: wire.Time(s.began), Ready: s.checkReady() == nil,
		Sends: map[string]int{}, Refused: refusals(samples["mailgate_sends_total"]),
		Shadow: refusals(samples["mailgate_shadow_refusals_total"]), Relays: []relayFigures{}, LastHour: s.metrics.hour.rates(s.with.Now()),
	}
	if since := s.with.DegradedSince(); since != 0 {
		f.Degraded = wire.Time(since)
	}
	for _, one := range samples["mailgate_sends_total"] {
		if one.labels["rule"] == "" && one.value > 0 {
			f.Sends[one.labels["outcome"]] += one.value
		}
	}
	for _, one := range samples["mailgate_refunds_total"] {
		if one.labels["result"] == delivery.RefundDone {
			f.GivenBack += one.value
		}
	}
	for _, one := range samples["mailgate_resets_total"] {
		f.Resets += one.value
	}
	if s.with.RelayStats != nil {
		for _, relay := range s.with.RelayStats() {
			f.Relays = append(f.Relays, relayFigures{relay.Idle, relay.Open - relay.Idle, relay.Waiting, relay.CircuitOpen})
		}
	}
	return respond(c, f)
}

// samples are the counters, by the metric's name.
func (s *Server) samples() (map[string][]sample, error) {
	families, err := s.with.Metrics.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering the figures: %w", err)
	}
	all := map[string][]sample{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetCounter() == nil {
				continue
			}
			one := sample{map[string]string{}, int(metric.GetCounter().GetValue())}
			for _, label := range metric.GetLabel() {
				one.labels[label.GetName()] = label.GetValue()
			}
			all[family.GetName()] = append(all[family.GetName()], one)
		}
	}
	return all, nil
}

// refusals are the samples that have a rule, in the order of the metrics: by their labels.
func refusals(samples []sample) []refusedBy {
	all := []refusedBy{}
	for _, one := range samples {
		if one.labels["rule"] != "" {
			all = append(all, refusedBy{one.labels["rule"], one.labels["limit"], one.value})
		}
	}
	return all
}
