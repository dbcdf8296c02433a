package main

import (
	"fmt"
	"io"
)

// leavesOut is what a peer in one process does not do. Ours charges an id once however often
// it is repeated, and can give it back, but for what is counted without one. It always keeps
// to a bound of memory, and tells to the millisecond when the next one may come. The figures
// of the peers are as they are.
var leavesOut = map[string]string{
	"ulule/limiter": "no ids, nothing given back; a denial is counted and written; memory has no bound",
	"go-limiter":    "no ids, nothing given back; windows begin anew with their tokens, so it is no log; memory has no bound",
	"slidingwindow": "no ids, nothing given back; estimates, and answers yes or no without a wait; a key is never forgotten",
	"x/time/rate":   "no ids; answers yes or no without a wait; floating point; a key is never forgotten",
	"throttled":     "no ids, nothing given back; a key is never forgotten here",
}

// printLess says of every peer in the table what it leaves out.
func printLess(w io.Writer, rows []row) error {
	told := map[string]bool{}
	for _, r := range rows {
		text, less := leavesOut[r.peer]
		if !less || told[r.peer] || r.unmeasured != "" {
			continue
		}
		told[r.peer] = true
		if _, err := fmt.Fprintf(w, "%s: %s\n", r.peer, text); err != nil {
			return err
		}
	}
	return nil
}
