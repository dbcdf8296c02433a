package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cache"
)

const few, many = 1_000, 1_000_000

// millionMailboxes measures mailgate with a data directory of a million mailboxes that may not be
// sent any more emails today, beside one with a thousand. All of the mailboxes are asked about, in
// no order: more than its memory holds.
func millionMailboxes(b *bench) []row {
	relay := b.openSink()
	var sides []side
	for _, n := range []int64{many, few} {
		p := b.startFull(relay.addr, n)
		l := b.openLoad(p.addr, visitors, sendCode(among(n)), http.StatusTooManyRequests)
		l.send(min(n, many/5)) // enough to fill its memory
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
	copyRecord(b.ctx, dir, n)
	return b.startMailgate(relay, data, tier)
}

// mailboxTable is where mailgate keeps what was sent to each mailbox.
const mailboxTable = "rule-mailbox-mailbox"

// copyRecord gives n mailboxes the record of the first.
func copyRecord(ctx context.Context, dir string, n int64) {
	store := must(cache.Open(cache.Options{Dir: dir}))
	defer store.Close()
	table := store.Table(mailboxTable)
	var prefix string
	var record []byte
	check(table.Each(ctx, func(key string, value []byte) bool {
		before, found := strings.CutSuffix(key, mailbox(0))
		if found {
			prefix, record = before, value
		}
		return !found
	}))
	if record == nil {
		check(fmt.Errorf("the table %s has no record of a mailbox that was sent mails", mailboxTable))
	}
	expires := time.Now().Add(24 * time.Hour).UnixMilli()
	parallel(256, 0, int(n), func(i int) error {
		return table.Update(ctx, prefix+mailbox(int64(i)), func([]byte, int64) ([]byte, int64) { return record, expires })
	})
}
