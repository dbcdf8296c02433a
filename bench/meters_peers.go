package main

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/mailgate/mailgate/throttle"
)

// A question is a peer of one function.
type question func(mailbox string) (allowed bool, err error)

func (q question) take(mailbox string) (bool, error) { return q(mailbox) }

// nothingToStop is the stop of a peer that has nothing running.
func nothingToStop() error { return nil }

func lengthOf(t throttle.Tier) time.Duration { return time.Duration(t.Window) * time.Millisecond }

// openUlule counts in a fixed window that begins with a key's first send.
func openUlule(_ string, t throttle.Tier) (peer, func() error, error) {
	return askUlule(limiter.New(ululememory.NewStore(), rateOf(t))), nothingToStop, nil
}

func rateOf(t throttle.Tier) limiter.Rate {
	return limiter.Rate{Period: lengthOf(t), Limit: int64(t.Limit)}
}

func askUlule(l *limiter.Limiter) peer {
	return question(func(mailbox string) (bool, error) {
		answer, err := l.Get(context.Background(), mailbox)
		return !answer.Reached, err
	})
}

// openGoLimiter hands out its tokens anew at the end of each interval. Its map has room
// for all from the beginning.
func openGoLimiter(_ string, t throttle.Tier) (peer, func() error, error) {
	store, err := memorystore.New(&memorystore.Config{
		Tokens:       uint64(t.Limit),
		Interval:     lengthOf(t),
		SweepMinTTL:  2 * lengthOf(t),
		InitialAlloc: keysAtRandom,
	})
	if err != nil {
		return nil, nil, err
	}
	ask := question(func(mailbox string) (bool, error) {
		_, _, _, ok, err := store.Take(context.Background(), mailbox)
		return ok, err
	})
	return ask, func() error { return store.Close(context.Background()) }, nil
}

// A keyed map has a limiter for each key, as is usual for those that know none.
type keyed[L any] struct {
	limiters sync.Map
	fresh    func() L
}

func (k *keyed[L]) of(key string) L {
	if known, ok := k.limiters.Load(key); ok {
		return known.(L)
	}
	first, _ := k.limiters.LoadOrStore(key, k.fresh())
	return first.(L)
}

// openSliding estimates by how much of the window before is still inside.
func openSliding(_ string, t throttle.Tier) (peer, func() error, error) {
	all := keyed[*slidingwindow.Limiter]{fresh: func() *slidingwindow.Limiter {
		l, _ := slidingwindow.NewLimiter(lengthOf(t), int64(t.Limit), func() (slidingwindow.Window, slidingwindow.StopFunc) {
			return slidingwindow.NewLocalWindow()
		})
		return l
	}}
	return question(func(mailbox string) (bool, error) { return all.of(mailbox).Allow(), nil }), nothingToStop, nil
}

func openTimeRate(_ string, t throttle.Tier) (peer, func() error, error) {
	perSecond := rate.Limit(float64(t.Limit) / lengthOf(t).Seconds())
	all := keyed[*rate.Limiter]{fresh: func() *rate.Limiter { return rate.NewLimiter(perSecond, t.Limit) }}
	return question(func(mailbox string) (bool, error) { return all.of(mailbox).Allow(), nil }), nothingToStop, nil
}

// openThrottled is GCRA. Its store has no bound here, which is the faster of its two.
func openThrottled(_ string, t throttle.Tier) (peer, func() error, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, nil, err
	}
	ask, err := askThrottled(store, t)
	return ask, nothingToStop, err
}

func askThrottled(store throttled.GCRAStoreCtx, t throttle.Tier) (peer, error) {
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(t.Limit, lengthOf(t)),
		MaxBurst: t.Limit - 1,
	})
	if err != nil {
		return nil, err
	}
	l.SetMaxCASAttemptsLimit(math.MaxInt) // its ten fail when all cores ask about one key
	return question(func(mailbox string) (bool, error) {
		limited, _, err := l.RateLimitCtx(context.Background(), mailbox, 1)
		return !limited, err
	}), nil
}
