package main

import (
	"net/http"
	"path/filepath"
	"slices"
)

const (
	visitors = 64    // connections where answers are quick
	senders  = 16    // connections where emails are sent
	known    = 1_000 // mailboxes that are asked about again and again
)

// refusedSends compares a refused POST /send-code with a handler that parses the same body and
// answers the same fields, but decides, counts and logs nothing. The mailboxes have just been sent
// an email, so they are refused for a minute: longer than all rounds take.
func refusedSends(b *bench) []row {
	relay := b.openSink()
	data, _ := b.newDataDir()
	ours, bare := b.startMailgate(relay.addr, data), b.startOwn("./bare")
	b.openLoad(ours.addr, senders, sendCode(each), http.StatusOK).send(known)
	again := sendCode(among(known))
	samples := alternate(*rounds,
		b.openLoad(ours.addr, visitors, again, http.StatusTooManyRequests).on(ours),
		b.openLoad(bare.addr, visitors, again, http.StatusTooManyRequests).on(bare))
	return []row{
		compare("refused send", "requests/s", "bare Fiber", rate, samples[0], samples[1], atLeast(0.9)),
		compare("refused send, processor", "µs", "bare Fiber", processor, samples[0], samples[1], bound{}),
	}
}

// admittedSends compares an admitted POST /send-code, from the request to the relay's 250 and
// back, with a service made by hand: in memory, which mailgate by default is not, and with the
// same kind of storage. Each mailbox is a new one.
func admittedSends(b *bench) []row {
	relay, redis := b.openSink(), b.startRedis()
	compareWith := func(settings []string, name, peer string, rates, processors bound, store ...string) []row {
		ours := b.startMailgate(relay.addr, settings...)
		handmade := b.startOwn("./handmade", append([]string{relay.addr}, store...)...)
		samples := b.admitted(each, ours, handmade)
		return []row{
			compare(name, "sends/s", peer, rate, samples[0], samples[1], rates),
			compare(name+", processor", "µs", peer, processor, samples[0], samples[1], processors),
		}
	}
	onDisk := func() []string { setting, _ := b.newDataDir(); return []string{setting} }
	onRedis := []string{"MAILGATE_REDIS_URL=redis://" + redis.addr, "MAILGATE_SECRET=bench-0c51e6a2f74b"}
	return slices.Concat(
		compareWith(onDisk(), "admitted send", "hand-made", atLeast(1.2), atMost(1)),
		compareWith(onDisk(), "admitted send on disk", "hand-made, SQLite", atLeast(1), bound{}, "sqlite", filepath.Join(b.dir, "handmade.db")),
		compareWith(onRedis, "admitted send on Redis", "hand-made, Redis", atLeast(1), bound{}, "redis", redis.addr))
}

// admitted alternates rounds of sends that are all admitted at each program. The number of a send is that of its mailbox.
func (b *bench) admitted(number func(n int64) int64, programs ...*process) [][]sample {
	var sides []side
	for _, p := range programs {
		sides = append(sides, b.openLoad(p.addr, senders, sendCode(number), http.StatusOK).on(p))
	}
	return alternate(*rounds, sides...)
}
