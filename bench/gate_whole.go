package main

import (
	"fmt"
	"path/filepath"
)

// gateWhole compares a whole admitted send, from the POST to the relay's 250 and back,
// with Postfix's own generator into the same relay. Every mailbox is a new one, and
// what is admitted is on disk before its mail goes out.
func gateWhole() (rows []row, err error) {
	sink, with := sinkName, withSink
	if _, missing := postfixTool(sinkName); missing != nil {
		sink, with = sandboxName, withSandbox
	}
	err = with(func(relay string) error {
		return withProgram(func(binary, dir string) error {
			return withRunning(binary, filepath.Join(dir, "data"), relay, func(p *program) error {
				return withLoad(func(l load) error {
					rows, err = wholeSends(l, p.addr, sink, relay, dir)
					return err
				})
			})
		})
	})
	return rows, err
}

func wholeSends(l load, api, sink, relay, dir string) ([]row, error) {
	const connections, requests = 32, 3_000
	next := 0
	sides := []side{{ours, func() (cost, error) {
		first := next
		next += requests
		return l.round(order{Addr: api, Connections: connections, Requests: requests,
			From: "user", First: first, Status: 200})
	}}}
	letters, err := composeAll(1)
	if err != nil {
		return nil, err
	}
	source, missing := newSource(dir, letters[0].message)
	if missing == nil {
		sides = append(sides, side{sourceName, func() (cost, error) { return source.round(relay, relayConns, requests) }})
	}
	read, err := interleave(9, sides...)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("a whole send into %s, %d callers, %d connections", sink, connections, relayConns)
	if missing != nil {
		return []row{
			figure(what, "ns", read.median(ours, onTheClock)),
			notMeasured(what+", beside "+sourceName, missing.Error()),
		}, nil
	}
	// At least 0.35 of its mails a second.
	return []row{read.compare(what, onTheClock, ours, sourceName, 2.86)}, nil
}
