package throttletest

import "github.com/mailgate/mailgate/throttle"

// A model keeps the sends of one mailbox in a list and counts them one by one. It is
// too slow for use and too plain to be wrong, and shares no code with the rule. Like
// a limiter it drops what has left every window when it records an admission.
type model struct {
	tiers []throttle.Tier
	sends []throttle.Admission
}

func (m *model) now(clock int64) int64 {
	for _, s := range m.sends {
		if s.At > clock {
			clock = s.At
		}
	}
	return clock
}

// inside counts the sends inside the window, and says when the oldest of the newest
// limit sends leaves it.
func (m *model) inside(tier throttle.Tier, now int64) (count int, frees int64) {
	for i := len(m.sends) - 1; i >= 0; i-- {
		if now-m.sends[i].At >= tier.Window {
			continue
		}
		count++
		if count == tier.Limit {
			frees = m.sends[i].At + tier.Window
		}
	}
	return count, frees
}

func (m *model) verdict(clock int64) (limit string, wait int64, tiers []throttle.Standing) {
	now := m.now(clock)
	for _, tier := range m.tiers {
		standing := throttle.Standing{Tier: tier}
		count, frees := m.inside(tier, now)
		if count < tier.Limit {
			standing.Remaining = tier.Limit - count
		} else {
			standing.Wait = frees - now
		}
		if standing.Wait > 0 && standing.Wait >= wait {
			limit, wait = tier.Name, standing.Wait
		}
		tiers = append(tiers, standing)
	}
	return limit, wait, tiers
}

func (m *model) peek(clock int64) string {
	limit, wait, tiers := m.verdict(clock)
	return spellOut(wait == 0, limit, wait, tiers)
}

func (m *model) take(clock int64, id throttle.ID) string {
	if !m.known(clock, id) {
		if _, wait, _ := m.verdict(clock); wait > 0 {
			return m.peek(clock)
		}
		m.sends = append(m.live(clock), throttle.Admission{ID: id, At: m.now(clock)})
	}
	limit, wait, tiers := m.verdict(clock)
	return spellOut(true, limit, wait, tiers)
}

// known reports whether the id is among the sends that still matter.
func (m *model) known(clock int64, id throttle.ID) bool {
	for _, s := range m.live(clock) {
		if s.ID == id {
			return true
		}
	}
	return false
}

func (m *model) live(clock int64) []throttle.Admission {
	longest := m.tiers[len(m.tiers)-1].Window
	var live []throttle.Admission
	for _, s := range m.sends {
		if m.now(clock)-s.At < longest {
			live = append(live, s)
		}
	}
	return live
}

func (m *model) release(id throttle.ID) {
	for i, s := range m.sends {
		if s.ID == id {
			m.sends = append(m.sends[:i:i], m.sends[i+1:]...)
			return
		}
	}
}

func (m *model) reset(clock int64) int {
	live := len(m.live(clock))
	m.sends = nil
	return live
}
