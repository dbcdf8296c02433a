// Package memory is the throttle.Limiter of a Go program that needs no disk and no
// server: everything is in the memory of the process.
//
//	minute, err := meter.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 60, Window: time.Minute.Milliseconds()}, 0)
//	if err != nil {
//		return err
//	}
//	visitors := memory.New(minute, memory.Options{})
//	verdict, err := visitors.Take(ctx, address, throttle.NewID())
//
// Where nobody will repeat a request or give it back, no id has to be remembered of it:
//
//	reading, err := visitors.Count(ctx, address)
//
// A [Limiter] counts by a meter; [Tiers] admit by a throttle.Policy, and keep every send.
// Neither has anything to close: there is no goroutine and no timer. Keys that have expired go
// when new ones come: a second later, or at once where more than half of the places are taken.
//
// A no is remembered beside what it goes by, and said again without the key's lock for as
// long as nothing changes there: so of many who hammer at a key that is denied none waits
// for another. That is so of keys with up to 16 ids on record, however many were counted,
// which one meter or policy refuses: where two do in turn, each remembers anew.
//
// A restart forgets all. So this is for limits whose windows are short beside the life
// of a process, such as requests of an address in a minute, and for tests. Where a limit
// is for a day, or somebody could gain by making the process restart, package
// throttle/local keeps the same on disk, and several processes that have to count
// together do so in throttle/cluster.
//
// Memory is bounded: see [Options] and [ErrFull]. A key that still counts is never forgotten
// to make room for another, as that would let whoever can think of enough keys free any of
// them. What keys that are gone have taken is given back in pieces of seven keys, when all
// seven are gone, and else is for those that come; but what tells where they were stays as
// long as it once was, about 40 bytes for each where there were many.
package memory
