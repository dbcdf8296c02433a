// Package wire is how verdicts are written for callers: the fields of an answer's JSON, the
// RateLimit headers, and the problem that a refusal is. The API and its middleware both write
// with it, so one client reads both.
package wire
