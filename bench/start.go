package main

import "time"

// starts measures a start on a new data directory until /readyz answers 200, and the memory
// that the process then has when it has nothing to do. The figures before are of two processors.
func starts(b *bench) []row {
	var ready, idle []float64
	for range *rounds {
		data, _ := b.newDataDir()
		p := b.startMailgate("127.0.0.1:1", data) // the relay is not asked before the first email
		time.Sleep(2 * time.Second)               // what is measured is the state after this time
		ready, idle = append(ready, p.ready.Seconds()*1000), append(idle, p.memory())
		p.stop()
	}
	return []row{
		compareRecorded("start to ready", "ms", ready, 19),
		compareRecorded("idle memory, 2 s after the start", "MB", idle, 21),
	}
}
