package main

import "net/http"

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
// back, with a service made by hand. Each mailbox is a new one.
func admittedSends(b *bench) []row {
	relay := b.openSink()
	data, _ := b.newDataDir()
	ours, handmade := b.startMailgate(relay.addr, data), b.startOwn("./handmade", relay.addr)
	samples := alternate(*rounds,
		b.openLoad(ours.addr, senders, sendCode(each), http.StatusOK).on(ours),
		b.openLoad(handmade.addr, senders, sendCode(each), http.StatusOK).on(handmade))
	return []row{
		compare("admitted send", "sends/s", "hand-made", rate, samples[0], samples[1], atLeast(1.2)),
		compare("admitted send, processor", "µs", "hand-made", processor, samples[0], samples[1], atMost(1)),
	}
}
