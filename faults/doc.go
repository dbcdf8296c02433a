// Package faults is the fault campaign: it runs real mailgate programs, with the race
// detector in them if it is in the tests, on real Redis servers or a real disk, with real
// relays, under a mixed load; breaks one thing at a seeded moment, repairs it, and lets
// package judge look at what the relays received and the callers were answered.
//
// The campaign is a test. Short, it is part of `make test`, with the programs as people run
// them, and of `make long`, with the race detector in them; `make faults` is the long one,
// and `make soak` breaks things at random for half an hour. One run is made again by its
// kind and seed:
//
//	go test -race -v ./faults -run TestCampaign -kind redis-killed -seed 7
//
// A kind is a row in the tables of the files kinds_*_test.go: what it needs, how it
// breaks, what shows its effect on the programs, how it is repaired, and what is allowed
// meanwhile. A fault without effect is a violation, too. A kind that leaves no time on the
// machine for other runs has it to itself: see solo.
package faults
