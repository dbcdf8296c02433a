package meter

import "github.com/mailgate/mailgate/throttle"

// soon is how many milliseconds after its time a send is recorded as if it had just been
// taken, as most are, and nothing more is kept of it.
const soon = 1000

// open reports whether sends are remembered also where the bucket has been empty since: some
// have been recorded late, and more of that time may come. What was in it before them is
// then nothing, as of the beginning of time.
func (s *State) open() bool { return len(s.Parts) > 0 && s.Parts[0] == 0 }

// reopen begins to remember so. Nothing may be known to have been in the bucket before those
// that are remembered.
func (s *State) reopen() { s.Parts = append(s.Parts[:0], 0, 0) }

func (b *bucket) record(s *State, id throttle.ID, at, clock int64) (changed bool) {
	late := clock-at > soon
	switch {
	case !late && at >= s.At:
		_, changed = b.take(s, id, at)
		return changed
	case s.find(id) >= 0:
		return false
	case at >= s.At:
		changed = b.recordNewest(s, id, at)
	default:
		changed = b.recordBetween(s, id, at, late)
	}
	b.forget(s, max(0, len(s.Held)-MaxHeld))
	return changed
}

// recordNewest records a send that nothing on record came after.
func (b *bucket) recordNewest(s *State, id throttle.ID, at int64) (changed bool) {
	level := b.drained(s.Count, s.At, at)
	if !b.fits(level) {
		return false
	}
	switch {
	case level == 0 && !s.open():
		s.forget(len(s.Held))
		s.reopen()
	case len(s.Parts) == 0: // those before were counted
		s.Parts = append(s.Parts, s.At, s.Count)
	case s.Parts[1] == 0:
		s.reopen()
	}
	s.At, s.Count = at, level+b.tier.Window
	s.insert(id, at)
	return true
}

// recordBetween records a send that others on record came after, if they leave room for it.
func (b *bucket) recordBetween(s *State, id throttle.ID, at int64, late bool) (changed bool) {
	if len(s.Parts) == 0 { // those before were counted
		s.Parts = append(s.Parts, s.At, s.Count)
	}
	if last, level, _ := b.refilled(s); last != s.At || level != s.Count {
		return b.recordAtOtherRate(s, id, at)
	}
	if s.Parts[1] == 0 {
		since := min(s.Parts[0], at)
		if late {
			since = 0
		}
		level, fits := b.with(s, since, at)
		if fits {
			s.Parts[0], s.Count = since, level
			s.insert(id, at)
		}
		return fits
	}
	if !b.reaches(at, s.Parts[0]) {
		return false
	}
	at = max(at, s.Parts[0])
	level, fits := b.with(s, s.Parts[0], at)
	if fits {
		s.Count = level
		s.insert(id, at)
	}
	return fits
}

// recordAtOtherRate is for where the rate has changed since the sends on record came. What was
// in the bucket when is then known of its newest moment alone.
func (b *bucket) recordAtOtherRate(s *State, id throttle.ID, at int64) (changed bool) {
	if !b.reaches(at, s.At) || !b.fits(s.Count) {
		return false
	}
	s.Count += b.tier.Window
	s.insert(id, s.At)
	return true
}

// reaches is whether a send is taken to be whole still at a later moment at which there was
// something in the bucket, and before which nobody knows any more when it was empty. So it is
// for as long as a full bucket takes to drain.
func (b *bucket) reaches(from, until int64) bool {
	return from >= until || b.drained(b.full, from, until) > 0
}

// with is what is in the bucket in the end with one send more, that came at a moment, and
// whether there is room for it until it has drained.
func (b *bucket) with(s *State, since, came int64) (level int64, fits bool) {
	at, without, with := since, s.Parts[1], s.Parts[1]
	in := false
	add := func() { // the one more
		in, with, without, at = true, b.drained(with, at, came)+b.tier.Window, b.drained(without, at, came), came
	}
	fits = true
	for i := range s.Held {
		send := &s.Held[i]
		if !in && send.At > came {
			add()
			fits = fits && with <= b.full
		}
		without, with, at = b.drained(without, at, send.At), b.drained(with, at, send.At), send.At
		without, with = without+b.tier.Window, with+b.tier.Window
		fits = fits && (with == without || with <= b.full)
	}
	if !in {
		add()
		fits = fits && with <= b.full
	}
	return with, fits
}
