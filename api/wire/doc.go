// Package wire writes verdicts for callers: the fields of an answer's JSON, the RateLimit headers,
// and the problem of a refusal. The API and its middleware both write with it, so one client reads
// both.
package wire
