package idempotency

import "github.com/mailgate/mailgate/internal/keyed"

// Merge merges two records of one key: that of the shared records and one that a node has made
// alone.
//
//	answered over all others          an answer is never replaced; of two the shared one stays
//	handedOver over begun, abandoned  its email may have left
//	begun over abandoned              of two the shared one stays, unless only its lease has ended
//	abandoned over begun, handedOver  of the same attempt, which was abandoned later
//	two handedOver                    handedOver by no attempt: none can abandon it any more
//
// Merging the same record again changes nothing. So a record that has learnt of a
// hand-over never grants a second one, in whatever order records are merged. A damaged shared
// record stays, since it may have been handed over; a damaged own one is ignored.
func Merge(shared, own []byte, now int64) (next []byte, expires int64) {
	s, err := parse(shared)
	if err != nil {
		return shared, now + keyed.DamagedLife
	}
	o, err := parse(own)
	if err != nil {
		o = record{}
	}
	r := merge(s.at(now), o.at(now), now)
	return r.encode(), r.expires
}

func merge(shared, own record, now int64) record {
	if shared.token == own.token && shared.state != answered && own.state != answered {
		return later(shared, own)
	}
	switch {
	case shared.state == handedOver && own.state == handedOver:
		shared.token = token{}
		shared.lease, shared.expires = max(shared.lease, own.lease), max(shared.expires, own.expires)
		return shared
	case shared.state == begun && own.state == begun && now >= shared.lease && now < own.lease:
		return own
	case own.state > shared.state:
		return own
	}
	return shared
}

// later returns the record of an attempt that is further on.
func later(shared, own record) record {
	switch {
	case shared.state == none || own.state == abandoned && shared.state != abandoned:
		return own
	case own.state == none || shared.state == abandoned:
		return shared
	case own.state > shared.state:
		return own
	}
	return shared
}
