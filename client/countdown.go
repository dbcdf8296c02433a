package client

import "encoding/json"

// moment is how mailgate writes a time. A page compares the texts, so the zeros count.
const moment = "2006-01-02T15:04:05.000Z07:00"

// ForCountdown is what a back end passes on to its page, as JSON, for the update method of
// the element <mailgate-countdown>: those parts of mailgate's answer that it takes.
func (s Standing) ForCountdown() json.RawMessage { return s.forCountdown(false) }

// ForCountdown is that of the standing. Of an answer that was given again it has the page
// ask at once how long the wait is now.
func (s Sent) ForCountdown() json.RawMessage { return s.forCountdown(s.Replayed) }

// ForCountdown is that of the standing, as of a [Sent]. Where there is none it is null, which
// changes nothing in a page.
func (p *Problem) ForCountdown() json.RawMessage {
	if p.Standing == nil {
		return json.RawMessage("null")
	}
	return p.Standing.forCountdown(p.Replayed)
}

func (s Standing) forCountdown(replayed bool) json.RawMessage {
	type limit struct {
		Name   string `json:"name"`
		Limit  int    `json:"limit"`
		Window int64  `json:"window_ms"`
		Wait   int64  `json:"wait_ms"`
	}
	limits := make([]limit, len(s.Limits))
	for i, l := range s.Limits {
		limits[i] = limit{l.Name, l.Limit, l.Window.Milliseconds(), l.Wait.Milliseconds()}
	}
	text, err := json.Marshal(struct {
		Limit     string  `json:"limit"`
		Wait      int64   `json:"wait_ms"`
		RetryAt   string  `json:"retry_at"`
		Limits    []limit `json:"limits"`
		Countdown string  `json:"countdown,omitempty"`
		Replayed  bool    `json:"replayed,omitempty"`
	}{s.Limit, s.Wait.Milliseconds(), s.RetryAt.UTC().Format(moment), limits, s.Countdown, replayed})
	if err != nil {
		panic("client: texts and numbers are not JSON: " + err.Error())
	}
	return text
}
