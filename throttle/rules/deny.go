package rules

import "github.com/mailgate/mailgate/throttle"

// Denial is sends that are refused, whatever the limits say.
type Denial struct {
	Name   string
	Some   Some
	Shadow bool // it reports and refuses nothing

	index *index
}

// denied returns the name of what denies the send for good, empty if nothing does. No home is asked.
func (s *Set) denied(send Send) string {
	for i := range s.denials {
		if d := &s.denials[i]; !d.Shadow && d.index.has(send) {
			return d.Name
		}
	}
	for i := range s.rules {
		if r := &s.rules[i]; !r.Shadow && r.Denies(send) {
			return r.Name
		}
	}
	return ""
}

// shadowLimit is what a shadow that would have denied a send has as its limit.
const shadowLimit = "denied"

// shadowsOf are what would have denied the send.
func (s *Set) shadowsOf(send Send) (all []Refusal) {
	for i := range s.denials {
		if d := &s.denials[i]; d.Shadow && d.index.has(send) {
			all = append(all, Refusal{Rule: d.Name, Verdict: throttle.Verdict{Limit: shadowLimit}})
		}
	}
	for i := range s.rules {
		if r := &s.rules[i]; r.Shadow && r.Denies(send) {
			all = append(all, Refusal{Rule: r.Name, By: r.By, Verdict: throttle.Verdict{Limit: shadowLimit}})
		}
	}
	return all
}
