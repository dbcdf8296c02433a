package main

import (
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

const few, many = 1_000, 1_000_000

// localGrowth compares a denial among a thousand mailboxes with one among a million,
// in one process. The thousand that are asked about are the same in number, so that
// the rows tell what the limiter costs and not what a processor's caches hold; the
// last row asks about all of the million at random, and lets the default memory forget
// most of them.
func localGrowth() (rows []row, err error) {
	const small, large, all, forgotten = "1,000 mailboxes", "1,000,000 mailboxes", "1,000,000, all asked", "1,000,000, default memory"
	o := local.Options{Policy: throttle.DefaultPolicy(), Now: func() int64 { return 1_800_000_000_000 }}
	keepAll := o
	keepAll.Size = cache.Size{Entries: 2 * many, Bytes: 2 << 30}
	of := map[string]*local.Limiter{}
	err = withLocal(keepAll, func(l *local.Limiter) error {
		of[small] = l
		return withLocal(keepAll, func(l *local.Limiter) error {
			of[large] = l
			return withLocal(o, func(l *local.Limiter) error {
				of[forgotten] = l
				rows, err = measureGrowth(of, small, large, all, forgotten)
				return err
			})
		})
	})
	return rows, err
}

func measureGrowth(of map[string]*local.Limiter, small, large, all, forgotten string) ([]row, error) {
	everybody := mailboxes(many)
	for name, limiter := range of {
		n := many
		if name == small {
			n = few
		}
		if _, err := spread(fillers, n, func(i int) error { return admitted(limiter, everybody[i]) }); err != nil {
			return nil, err
		}
	}
	order := shuffled(everybody)
	read, err := interleave(7,
		side{large, askSome(of[large], order[:few], 1_000_000)},
		side{small, askSome(of[small], shuffled(everybody[:few]), 1_000_000)},
		side{all, askSome(of[large], order, 1_000_000)},
		side{forgotten, askSome(of[forgotten], order, 200_000)},
	)
	if err != nil {
		return nil, err
	}
	return []row{
		read.compare("a denial among "+large, onTheClock, large, small, 1.5),
		read.compare("a denial among "+all, onTheClock, all, small, 1.5),
		read.compare("a denial among "+forgotten, onTheClock, forgotten, small, 0),
	}, nil
}

func askSome(limiter *local.Limiter, order []string, n int) func() (cost, error) {
	return askInOrder(2, n, order, func(mailbox string) error { return denied(limiter, mailbox) })
}
