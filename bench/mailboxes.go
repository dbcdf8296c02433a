package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/mailgate/mailgate/throttle"
)

// mailboxes makes so many addresses, 20 characters each, in order.
func mailboxes(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = mailbox("user", i)
	}
	return all
}

// mailbox is an address that tells where it is from: 20 characters for "user".
func mailbox(from string, i int) string {
	return fmt.Sprintf("%s%07d@mail.com", from, i)
}

// shuffled is the mailboxes in an order that is random and the same in every run.
func shuffled(all []string) []string {
	order := make([]string, len(all))
	for i, place := range rand.New(rand.NewPCG(1, 2)).Perm(len(all)) {
		order[i] = all[place]
	}
	return order
}

var (
	errAdmitted = errors.New("a send was admitted that should have been denied")
	errDenied   = errors.New("a send was denied that should have been admitted")
)

// denied takes once and insists on a no.
func denied(limiter throttle.Limiter, mailbox string) error {
	v, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
	if err == nil && v.Allowed {
		return errAdmitted
	}
	return err
}

// admitted takes once and insists on a yes.
func admitted(limiter throttle.Limiter, mailbox string) error {
	v, err := limiter.Take(context.Background(), mailbox, throttle.NewID())
	if err == nil && !v.Allowed {
		return errDenied
	}
	return err
}

// mustPolicy reads a policy that is written in this program.
func mustPolicy(text string) throttle.Policy {
	p, err := throttle.ParsePolicy(text)
	if err != nil {
		panic(err)
	}
	return p
}
