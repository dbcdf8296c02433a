package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/throttle"
)

func ExampleParsePolicy() {
	policy, err := throttle.ParsePolicy("hour=3/1h, burst=1/1m30s")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tier := range policy.Tiers() {
		fmt.Println(tier.Name, tier.Limit, tier.Window)
	}
	fmt.Println(policy)

	_, err = throttle.ParsePolicy("minute=6/60s,hour=5/1h")
	fmt.Println(err)
	// Output:
	// burst 1 90000
	// hour 3 3600000
	// burst=1/90s,hour=3/1h
	// tier minute: 6 sends in 60s can never be reached while tier hour allows 5 in 1h
}

func ExampleDecide() {
	policy := throttle.DefaultPolicy()
	sent := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	history := throttle.History{{ID: throttle.NewID(), At: sent}}

	for _, now := range []int64{sent + 1000, sent + 59_999, sent + 60_000} {
		v := throttle.Decide(policy, history, now)
		fmt.Printf("allowed %-5v  limit %q  wait %d\n", v.Allowed, v.Limit, v.Wait)
	}
	// Output:
	// allowed false  limit "minute"  wait 59000
	// allowed false  limit "minute"  wait 1
	// allowed true   limit ""  wait 0
}

// A yes that was just recorded already says when the next one may come.
func ExampleAdmitted() {
	policy := throttle.DefaultPolicy()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()

	var history throttle.History
	if throttle.Decide(policy, history, now).Allowed {
		history = history.With(policy, throttle.NewID(), now)
	}
	v := throttle.Admitted(policy, history, now)
	fmt.Println(v.Allowed, v.Limit, v.Wait)
	fmt.Println(time.UnixMilli(v.RetryAt()).UTC().Format(time.TimeOnly))
	// Output:
	// true minute 60000
	// 12:01:00
}

func ExampleVerdict_Tiers() {
	policy := throttle.DefaultPolicy()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	history := throttle.History{{ID: throttle.NewID(), At: now - 10_000}}

	for _, tier := range throttle.Decide(policy, history, now).Tiers() {
		fmt.Printf("%s: %d of %d left, wait %d\n", tier.Name, tier.Remaining, tier.Limit, tier.Wait)
	}
	// Output:
	// minute: 0 of 1 left, wait 50000
	// hour: 4 of 5 left, wait 0
	// day: 9 of 10 left, wait 0
}

// A history is a value. What a limiter does with one: decide, record, give back.
func ExampleHistory() {
	policy := throttle.DefaultPolicy()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()
	first, second := throttle.NewID(), throttle.NewID()

	one := throttle.History(nil).With(policy, first, now)
	two := one.With(policy, second, now+60_000)
	fmt.Println("recorded:", len(one), len(two))

	back, found := two.Without(first)
	fmt.Println("given back:", found, len(back), back.Find(second))

	// A day after the first send only the second is still inside the longest window.
	fmt.Println("within a day:", len(two.Within(policy.Longest(), now+policy.Longest())))

	// A clock that steps back counts as the newest send.
	fmt.Println("clock:", two.Clock(now) == two.Newest())
	// Output:
	// recorded: 1 2
	// given back: true 1 0
	// within a day: 1
	// clock: true
}

func ExampleParseID() {
	id := throttle.NewID()
	same, err := throttle.ParseID(id.String())
	fmt.Println(same == id, err)

	_, err = throttle.ParseID("no such reservation")
	fmt.Println(err)
	// Output:
	// true <nil>
	// a reservation is eight characters of A-Z, a-z, 0-9, - and _, as NewID makes them
}

func ExampleNewID() {
	id := throttle.NewID()
	fmt.Println(len(id.String()), id.Valid(), throttle.ID{}.Valid())
	// Output: 8 true false
}

// What a limiter of one's own begins a call with, and how it says that it has no answer.
func ExampleCheckCall() {
	err := throttle.CheckCall(context.Background(), "take", "")
	fmt.Println(err, errors.Is(err, throttle.ErrKey))

	err = throttle.Unavailable("take", errors.New("the disk is full"))
	fmt.Println(err, errors.Is(err, throttle.ErrUnavailable))
	// Output:
	// take: a key is 1 to 1024 bytes long true
	// take: the history is unavailable: the disk is full true
}
