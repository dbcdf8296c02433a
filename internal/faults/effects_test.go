package faults_test

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/internal/redistest"
)

// effect is what shows that a fault reached the programs. It is made before the fault; what it
// returns reports whether there was any effect since.
type effect func(*rig) (seen func() bool)

// awaitEffect returns when the effect is seen or the time for it is over.
func (s *rig) awaitEffect(k *kind, seen func() bool) {
	for deadline := time.Now().Add(s.shape.effect); !seen(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.noEffect = append(s.noEffect, judge.Violation{Rule: "effect", What: "the fault " + k.name + " had no effect"})
			return
		}
	}
}

// The effects that are seen in an answer.
var (
	degrades   = answers(func(c *judge.Call) bool { return c.Degraded && !c.Replayed })
	noStore    = answers(func(c *judge.Call) bool { return c.Kind == "store-unavailable" })
	cutOff     = answers(func(c *judge.Call) bool { return c.Status == 0 && c.Kind != judge.NotAsked && c.Kind != judge.Lost })
	notReached = answers(func(c *judge.Call) bool { return c.Kind == judge.NotAsked })
	clockOff   = answers(func(c *judge.Call) bool { return c.Clock != 0 && farOff(c.Clock, c.Span.To) })
)

// answers is an effect that the answer to a later call shows.
func answers(shows func(*judge.Call) bool) effect {
	return func(s *rig) func() bool {
		since := time.Now().UnixMilli()
		return func() bool {
			s.load.mu.Lock()
			defer s.load.mu.Unlock()
			return slices.ContainsFunc(s.load.calls, func(c judge.Call) bool { return c.Span.To >= since && shows(&c) })
		}
	}
}

// counts is an effect that a count shows, once it has grown by so much.
func counts(by int, count func(*rig) int) effect {
	return func(s *rig) func() bool {
		before := count(s)
		return func() bool { return count(s) >= before+by }
	}
}

// farOff reports whether a clock was set.
func farOff(clock, now int64) bool { return math.Abs(float64(clock-now)) > 80_000 }

// misdates: an email has the time of a clock that was set.
var misdates = counts(1, func(s *rig) (n int) {
	s.received.mu.Lock()
	defer s.received.mu.Unlock()
	for _, m := range s.received.mails {
		if farOff(m.Dated, m.At) {
			n++
		}
	}
	return n
})

// troubles: more tries at the first relay have failed than one cut can explain.
var troubles = counts(3, func(s *rig) (failed int) {
	for _, one := range s.nodes {
		all, _ := s.metricsOf(one) // without an answer there is none
		for sample, value := range all {
			if strings.HasPrefix(sample, "mailgate_relay_try_duration_seconds_count{") &&
				strings.Contains(sample, s.relays[0].Addr()) && !strings.Contains(sample, `"sent"`) {
				failed += int(value)
			}
		}
	}
	return failed
})

// logs is an effect that a node logs.
func logs(words string) effect {
	return counts(1, func(s *rig) (n int) {
		for _, one := range s.nodes {
			n += strings.Count(one.logged(), words)
		}
		return n
	})
}

// losesReplies: the proxy has lost a reply that a node waited for.
var losesReplies = counts(1, func(s *rig) int { return s.proxy.Lost() })

// errs is an effect that servers count: errors of these kinds that they answered with.
func errs(errors ...string) effect {
	return counts(1, func(s *rig) int { return s.refused(errors...) })
}

// refused is how often servers have answered with an error of these kinds.
func (s *rig) refused(errors ...string) (n int) {
	for _, server := range s.masters {
		for _, one := range errors {
			n += infoOf(server, "errorstats", "errorstat_"+one+":count=")
		}
	}
	return n
}

// promotes: a server that was a replica decides.
var promotes = counts(1, func(s *rig) (n int) {
	for _, server := range s.replicas {
		n += infoOf(server, "commandstats", "cmdstat_evalsha:calls=")
	}
	return n
})

// lagsBehind: a replica has not been heard of for longer than it ever keeps silent, while
// the master had something to tell.
func lagsBehind(s *rig) func() bool {
	return func() bool {
		master := s.sentinel.Master
		return infoOf(master, "replication", ",lag=") >= 2 &&
			infoOf(master, "replication", "master_repl_offset:") > infoOf(master, "replication", ",offset=")
	}
}

// infoOf is the number after these words in a server's INFO, 0 if there is none.
func infoOf(server *redistest.Server, section, words string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	text, err := server.Client().Info(ctx, section).Result()
	if err != nil {
		return 0
	}
	found := regexp.MustCompile(regexp.QuoteMeta(words) + `(\d+)`).FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // digits
	return n
}
