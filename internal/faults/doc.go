// Package faults is the fault campaign. It runs real mailgate programs under a mixed load, on real Redis
// servers or a real disk, with relays that fail on purpose. It injects one fault at a seeded moment and
// repairs it. Then package judge compares what the relays received with what the callers were answered.
//
// The campaign is a test. With one seed for each kind it is part of `make test`; `make faults` is
// the long one, and `make soak` injects faults at random for half an hour. One run is repeated by
// its kind and seed:
//
//	go test -v ./internal/faults -run 'TestCampaign/^redis-killed$/^7$' -seeds 7
//
// A kind is a row in the tables of the files kinds_*_test.go. It says what the fault needs, how it is
// injected and repaired, what shows its effect on the programs, and what is allowed meanwhile. A fault
// without effect is a violation.
package faults
