package web_test

import (
	"context"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/idempotency"
	sharedkeeper "github.com/mailgate/mailgate/idempotency/cluster"
	keeper "github.com/mailgate/mailgate/idempotency/local"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/verify"
	sharedbook "github.com/mailgate/mailgate/verify/cluster"
	book "github.com/mailgate/mailgate/verify/local"
)

// stores are where a desk keeps what it knows.
type stores struct {
	limiter throttle.Surveyor
	guesses throttle.Limiter
	codes   verify.Book
	repeats api.Repeats
	ready   func(context.Context) error
}

// How long marks are kept, in milliseconds; answers are on the default terms.
var markTerms = idempotency.Terms{Lease: 86_400_000, Keep: 86_400_000}

func (d *desk) onDisk() stores {
	d.t.Helper()
	disk := must(cache.Open(cache.DiskOptions{Dir: cache.Memory}))(d.t)
	limiter := must(local.New(disk, local.Options{Policy: throttle.DefaultPolicy(), Size: cachetest.Small, Now: d.now}))(d.t)
	codes := must(book.New(disk, book.Options{Size: cachetest.Small, Now: d.now}))(d.t)
	answers := must(keeper.New(disk, keeper.Options{Size: cachetest.Small, Now: d.now}))(d.t)
	handed := must(keeper.New(disk, keeper.Options{Terms: markTerms, Name: "handed-over", Size: cachetest.Small, Now: d.now}))(d.t)
	d.t.Cleanup(func() {
		limiter.Close()
		codes.Close()
		answers.Close()
		handed.Close()
		disk.Close()
	})
	return stores{limiter, limiter.Tiers("guesses", verify.DefaultGuesses()), codes, api.Repeats{Answers: answers, HandedOver: handed}, limiter.Ready}
}

func (d *desk) inRedis() stores {
	d.t.Helper()
	store := must(redisstore.Open(redisstore.Options{URL: redistest.Alone(d.t).URL(), Clock: d.now, Timeout: patience}))(d.t)
	d.t.Cleanup(func() { store.Close() })
	limiter := must(cluster.New(store, throttle.DefaultPolicy()))(d.t)
	answers := must(sharedkeeper.New(store, idempotency.Terms{}))(d.t)
	handed := must(sharedkeeper.New(store, markTerms))(d.t)
	return stores{limiter, limiter.Tiers("guesses", verify.DefaultGuesses()), sharedbook.New(store), api.Repeats{Answers: answers, HandedOver: handed}, store.Ready}
}
