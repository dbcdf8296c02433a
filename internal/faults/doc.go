// Package faults is the fault campaign: it runs real mailgate programs on real Redis servers or a
// real disk, with relays that fail on purpose, under a mixed load; injects one fault at a seeded
// moment, repairs it, and has package judge compare what the relays received with what the callers
// were answered.
//
// The campaign is a test. With one seed for each kind it is part of `make test`; `make faults` is
// the long one, and `make soak` injects faults at random for half an hour. One run is repeated by
// its kind and seed:
//
//	go test -v ./faults -run 'TestCampaign/^redis-killed$/^7$' -seeds 7
//
// A kind is a row in the tables of the files kinds_*_test.go: what it needs, how it is injected and
// repaired, what shows its effect on the programs, and what is allowed meanwhile. A fault without
// effect is a violation.
package faults
