package ledger

import "sync"

// The chart of the last hour has a point every chartStep seconds, and each point counts the
// minute that ends there.
const (
	chartStep   = 20
	chartPoints = 3600/chartStep + 1
	chartMinute = 60
	hourSeconds = 3600 + chartMinute + chartStep
)

// Hour counts sends and refusals by the second, for the chart of the console.
type Hour struct {
	mu      sync.Mutex
	seconds [hourSeconds]second // a ring
	earlier Rates               // of this node before its start
	then    int64               // when it told them
}

// Continue adds what this node told at a time before it was started again.
func (h *Hour) Continue(earlier Rates, then int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.earlier, h.then = earlier, then
}

type second struct {
	at     int64 // seconds since 1970
	counts [chartLines]int
}

// Rates are rolling minutes: each entry counts the minute before it. The last one ends now, the
// others at whole multiples of the step.
type Rates struct {
	Step    int   `json:"step_ms"`
	Sent    []int `json:"sent"`
	Refused []int `json:"refused"`
	Failed  []int `json:"failed"`
}

func (r *Rates) lines() [chartLines][]int { return [chartLines][]int{r.Sent, r.Refused, r.Failed} }

// Add adds those that another node had at a time. What it has not told since then counts as nothing, but for the last
// point, which may be a step old.
func (r *Rates) Add(other Rates, now, then int64) {
	const step = chartStep * 1000
	ahead := int((now-1000)/step - (then-1000)/step) // whole multiples of the step, as Rates has them
	for i, to := range r.lines() {
		from := other.lines()[i]
		if len(from) != chartPoints {
			return
		}
		for p := range to {
			switch at := p + ahead; {
			case p == chartPoints-1:
				if now-then <= step {
					to[p] += from[p]
				}
			case at >= 0 && at < chartPoints:
				to[p] += from[at]
			}
		}
	}
}

func (h *Hour) count(now int64, what hour) {
	if what == apart {
		return
	}
	at := now / 1000
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &h.seconds[at%hourSeconds]
	if one.at != at {
		*one = second{at: at}
	}
	one.counts[what-1]++
}

// Rates returns the minutes of the hour before now.
func (h *Hour) Rates(now int64) Rates {
	r := Rates{Step: chartStep * 1000, Sent: make([]int, chartPoints), Refused: make([]int, chartPoints), Failed: make([]int, chartPoints)}
	last := now / 1000
	h.mu.Lock()
	defer h.mu.Unlock()
	end := last
	for i := chartPoints - 1; i >= 0; i-- {
		for at := max(0, end-chartMinute+1); at <= end; at++ {
			if one := &h.seconds[at%hourSeconds]; one.at == at {
				for what, counts := range r.lines() {
					counts[i] += one.counts[what]
				}
			}
		}
		end = (end - 1) / chartStep * chartStep
	}
	r.Add(h.earlier, now, h.then)
	return r
}
