package idempotency

// A Record is what is on record of one name: a request in flight, or its answer. The zero
// Record is none. Records never change; what changes them returns others.
type Record struct {
	Token   Token
	Body    Fingerprint
	Expires int64   // the first moment at which there is no record any more
	Answer  *Answer // nil while in flight
}

// live reports whether there is a record at now.
func (r Record) live(now int64) bool { return !r.Token.IsZero() && now < r.Expires }

// Begin answers a request with the body that lease has, and says what is on record from
// then on. If it is started, that is the lease, until its end. A lease that has begun
// before is still at it, so that a step can be repeated whose outcome was lost.
func (r Record) Begin(lease Lease, now int64, terms Terms) (Record, Outcome) {
	switch {
	case !r.live(now):
		next := Record{Token: lease.Token, Body: lease.Body, Expires: now + terms.Lease}
		return next, Outcome{State: Started, Lease: lease}
	case r.Body != lease.Body:
		return r, Outcome{State: Mismatch}
	case r.Answer != nil:
		return r, Outcome{State: Replay, Answer: r.Answer.Clone()}
	case r.Token == lease.Token:
		return r, Outcome{State: Started, Lease: lease}
	}
	return r, Outcome{State: InFlight, RetryAfter: r.Expires - now}
}

// Finish keeps the answer, unless there is a record of another lease. An answer that the
// lease has given before stays.
func (r Record) Finish(lease Lease, a Answer, now int64, terms Terms) (next Record, kept bool) {
	if r.live(now) && r.Token != lease.Token {
		return r, false
	}
	if r.live(now) && r.Answer != nil {
		return r, true
	}
	a = a.Clone()
	return Record{Token: lease.Token, Body: lease.Body, Expires: now + terms.Keep, Answer: &a}, true
}

// Abandon leaves no record, if the lease is in flight.
func (r Record) Abandon(lease Lease, now int64) (next Record, freed bool) {
	if !r.live(now) || r.Token != lease.Token || r.Answer != nil {
		return r, false
	}
	return Record{}, true
}
