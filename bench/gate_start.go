package main

import (
	"fmt"
	"path/filepath"
	"time"
)

// gateStart measures a start on a directory that is not there yet, up to the first
// /readyz that says yes, and what the process then takes when nobody asks anything.
func gateStart() (rows []row, err error) {
	const starts, settled = 9, 2 * time.Second
	var ready, resident []float64
	err = withProgram(func(binary, dir string) error {
		for i := range starts {
			data := filepath.Join(dir, fmt.Sprint("data", i))
			// Nothing is dialed before the first mail.
			err := withRunning(binary, data, "127.0.0.1:1", func(p *program) error {
				ready = append(ready, float64(p.ready.Microseconds())/1000)
				if i >= 3 {
					return nil
				}
				time.Sleep(settled) // this is the moment that is asked about
				megabytes, err := memoryOf(p.pid)
				resident = append(resident, megabytes["VmRSS"])
				return err
			})
			if err != nil {
				return err
			}
		}
		rows = append(rows,
			figure("a cold start, to ready", "ms", median(ready)).atMost(150),
			figure("idle, 2 s after the start: resident", "MB", median(resident)).atMost(50))
		return nil
	})
	return rows, err
}
