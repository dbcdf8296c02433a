package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cache"
)

const few = 1_000

var many = 1_000_000 // less in a test

// recordFormat is that of cmd/mailgate.
const recordFormat = 6

// millionMailboxes measures mailgate with a data directory of a million mailboxes that may not be
// sent any more emails today, beside one with a thousand. All of the mailboxes are asked about, in
// no order: more than its memory holds.
func millionMailboxes(b *bench) []row {
	relay := b.openSink()
	var sides []side
	for _, n := range []int64{int64(many), few} {
		p := b.startFull(relay.addr, n)
		l := b.openLoad(p.addr, visitors, sendCode(among(n)), http.StatusTooManyRequests)
		l.send(min(n, int64(many)/5)) // enough to fill its memory
		sides = append(sides, l.on(p))
	}
	samples := alternate(*rounds, sides...)
	var resident []float64
	for _, s := range samples[0] {
		resident = append(resident, s.memory)
	}
	return []row{
		compareRecorded("memory with 1,000,000 full mailboxes", "MB", resident, 152),
		compare("refused send among 1,000,000 mailboxes", "µs", "among 1,000", elapsed, samples[0], samples[1], bound{}),
	}
}

// startFull starts mailgate on n mailboxes that are full. One was filled over HTTP; the records
// of the others are copies of its record.
func (b *bench) startFull(relay string, n int64) *process {
	const tier, size = "MAILGATE_TIERS=day=10/24h", 10
	data, dir := b.newDataDir()
	p := b.startMailgate(relay, data, tier)
	b.openLoad(p.addr, 1, sendCode(among(1)), http.StatusOK).send(size)
	p.stop()
	copyRecord(b.ctx, dir, "rule-mailbox-mailbox", n)
	return b.startMailgate(relay, data, tier)
}

// suppressedMillion compares admitted sends of mailgate with a list of a million suppressed mailboxes, none of which
// is sent to, with those of one whose list is empty.
func suppressedMillion(b *bench) []row {
	relay := b.openSink()
	ours, empty := b.startSuppressing(relay.addr, int64(many)), b.startSuppressing(relay.addr, 0)
	next := func(n int64) int64 { return 2*int64(many) + n }
	samples := b.admitted(next, ours, empty)
	return []row{
		compare("admitted send, 1,000,000 suppressed", "sends/s", "none suppressed", rate, samples[0], samples[1], atLeast(0.9)),
		compare("admitted send, 1,000,000 suppressed, processor", "µs", "none suppressed", processor, samples[0], samples[1], bound{}),
	}
}

// startSuppressing starts mailgate on a list of n mailboxes. One was suppressed over HTTP; the entries of the others
// are copies of its entry.
func (b *bench) startSuppressing(relay string, n int64) *process {
	data, dir := b.newDataDir()
	if n > 0 {
		p := b.startMailgate(relay, data, "MAILGATE_ADMIN_KEYS=ops:"+adminKey)
		suppress := func(int64) string {
			return "PUT /admin/suppressions/" + mailbox(0) + " HTTP/1.1\r\nHost: mailgate.example\r\nAuthorization: Bearer " + adminKey +
				"\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
		}
		b.openLoad(p.addr, 1, suppress, http.StatusNoContent).send(1)
		p.stop()
		copyRecord(b.ctx, dir, "suppressions", n)
	}
	return b.startMailgate(relay, data)
}

// copyRecord gives n mailboxes the record of the first in a table.
func copyRecord(ctx context.Context, dir, name string, n int64) {
	store := must(cache.Open(cache.Options{Dir: dir, Format: recordFormat}))
	defer store.Close()
	table := store.Table(name)
	var prefix, suffix string
	var record []byte
	check(table.Each(ctx, func(key string, value []byte) bool {
		before, after, found := strings.Cut(key, mailbox(0))
		if found {
			prefix, suffix, record = before, after, value
		}
		return !found
	}))
	if record == nil {
		check(fmt.Errorf("the table %s has no record of the first mailbox", name))
	}
	expires := time.Now().Add(24 * time.Hour).UnixMilli()
	parallel(256, 0, int(n), func(i int) error {
		return table.Update(ctx, prefix+mailbox(int64(i))+suffix, func([]byte, int64) ([]byte, int64) { return record, expires })
	})
}
