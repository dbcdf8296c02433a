package faults_test

import (
	"context"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// A effect is what shows that a fault happened to the programs, and not only beside them. It
// is made before the fault strikes; what it returns says whether there is any of it since.
type effect func(*running) (seen func() bool)

// awaitEffect returns once the fault is seen, or when it was waited for in vain.
func (r *running) awaitEffect(k *kind, seen func() bool) {
	for deadline := time.Now().Add(r.shape.effect); !seen(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.noEffect = append(r.noEffect, judge.Violation{Rule: "effect", What: "the fault " + k.name + " happened to nobody"})
			return
		}
	}
}

// The effect that are seen in an answer.
var (
	degrades = answers(func(c *judge.Call) bool { return c.Degraded && !c.Replayed })
	noStore  = answers(func(c *judge.Call) bool { return c.Kind == "store-unavailable" })
	cutOff   = answers(func(c *judge.Call) bool { return c.Status == 0 && c.Kind != judge.NotAsked })
	notReached   = answers(func(c *judge.Call) bool { return c.Kind == judge.NotAsked })
	clockOff = answers(func(c *judge.Call) bool { return c.Clock != 0 && farOff(c.Clock, c.Span.To) })
)

// answers is a effect that is seen in the answer to a call that was begun since.
func answers(shows func(*judge.Call) bool) effect {
	return func(r *running) func() bool {
		since := time.Now().UnixMilli()
		return func() bool {
			r.load.mu.Lock()
			defer r.load.mu.Unlock()
			return count(r.load.calls, func(c *judge.Call) bool { return c.Span.To >= since && shows(c) }) > 0
		}
	}
}

// farOff is what a clock shows that was set.
func farOff(clock, now int64) bool { return math.Abs(float64(clock-now)) > 80_000 }

// misdates: a mail bears the time of a clock that was set.
func misdates(r *running) func() bool {
	since := time.Now().UnixMilli()
	return func() bool {
		r.relays.mu.Lock()
		defer r.relays.mu.Unlock()
		for _, m := range r.relays.mails {
			if m.At >= since && farOff(m.Dated, m.At) {
				return true
			}
		}
		return false
	}
}

// troubles: tries at the first relay have failed, more of them than a cut can have met.
func troubles(r *running) func() bool {
	failed := func() (n float64) {
		for _, one := range r.nodes {
			samples, _ := samplesOf(r.caller, one) // a node that says nothing shows nothing
			for sample, value := range samples {
				if strings.HasPrefix(sample, "mailgate_relay_try_duration_seconds_count{") &&
					strings.Contains(sample, r.relays.first.Addr()) && !strings.Contains(sample, `"sent"`) {
					n += value
				}
			}
		}
		return n
	}
	before := failed()
	return func() bool { return failed() >= before+3 }
}

// logs is a effect that a node speaks of.
func logs(words string) effect {
	return func(r *running) func() bool {
		told := func() (n int) {
			for _, one := range r.nodes {
				text, err := os.ReadFile(one.logFile)
				if err != nil {
					r.t.Error(err)
				}
				n += strings.Count(string(text), words)
			}
			return n
		}
		before := told()
		return func() bool { return told() > before }
	}
}

// losesReplies: the proxy has thrown away what a node waited for.
func losesReplies(r *running) func() bool {
	before := r.proxy.Lost()
	return func() bool { return r.proxy.Lost() > before }
}

// errs is a effect that servers count: errors of these kinds that they answered with.
func errs(errors ...string) effect {
	return func(r *running) func() bool {
		before := r.refused(errors...)
		return func() bool { return r.refused(errors...) > before }
	}
}

// refused is how often servers have answered with an error of these kinds.
func (s *rig) refused(errors ...string) (n int) {
	for _, server := range s.masters() {
		for _, one := range errors {
			n += infoOf(server, "errorstats", "errorstat_"+one+":count=")
		}
	}
	return n
}

// masters are the servers that nodes talk to when all is well.
func (s *rig) masters() []*redistest.Server {
	switch {
	case s.cluster != nil:
		return s.cluster.Masters
	case s.sentinel != nil:
		return []*redistest.Server{s.sentinel.Master}
	}
	return []*redistest.Server{s.alone}
}

// promotes: a server that was a replica decides.
func promotes(r *running) func() bool {
	var replicas []*redistest.Server
	if r.cluster != nil {
		replicas = r.cluster.Replicas
	} else {
		replicas = append(replicas, r.sentinel.Replica)
	}
	return func() bool {
		for _, server := range replicas {
			if infoOf(server, "commandstats", "cmdstat_evalsha:calls=") > 0 {
				return true
			}
		}
		return false
	}
}

// lagsBehind: a replica has not been heard of for longer than it ever keeps silent, while
// the master had something to tell.
func lagsBehind(r *running) func() bool {
	return func() bool {
		master := r.sentinel.Master
		return infoOf(master, "replication", ",lag=") >= 2 &&
			infoOf(master, "replication", "master_repl_offset:") > infoOf(master, "replication", ",offset=")
	}
}

// infoOf is the number after these words in what a server says of itself, 0 if there is
// none.
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

// TestAFaultThatBitesNobody: the run of a kind whose inject is in the air is not in order.
func TestAFaultThatBitesNobody(t *testing.T) {
	t.Parallel()
	toothless := *kindNamed("redis-killed")
	toothless.inject, toothless.repair = func(*rig) {}, func(*rig) {}
	brief := short
	brief.effect = time.Second
	var o outcome
	for range 3 { // a machine that is busy effect as well, but not each time
		o = run(t, &toothless, 1, brief)
		if slices.ContainsFunc(o.found, func(v judge.Violation) bool { return v.Rule == "effect" }) {
			return
		}
	}
	t.Errorf("nobody noticed: %+v", o.found)
}

// TestWithoutAFaultNothingBites: no kind takes for its fault what there always is. Kinds
// on the same store are looked at together.
func TestWithoutAFaultNothingBites(t *testing.T) {
	for name, some := range byStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []string
			for range 3 { // a machine that is busy is seen as well, but not each time
				if seen = effectsInCalm(t, some); len(seen) == 0 {
					return
				}
			}
			t.Errorf("seen, and there is no fault: %v", seen)
		})
	}
}

// effectsInCalm are the kinds of fault that are seen where there is none.
func effectsInCalm(t *testing.T, some []*kind) (seen []string) {
	calm := *some[0]
	calm.within = nil
	s := newRig(t, &calm, policies[1], 1, short)
	r := s.begin()
	is := map[string]func() bool{}
	for _, k := range some {
		is[k.name] = k.effect(r)
	}
	servertest.Eventually(t, "mails to be sent", func() bool { return r.relays.count() >= 40 })
	for kind, effect := range is {
		if effect() {
			seen = append(seen, kind)
		}
	}
	s.load.stop()
	r.stopCollecting()
	r.stopWatching()
	return seen
}

// byStore are the kinds that have the same store, under the name of one of them.
func byStore() map[string][]*kind {
	groups, names := map[string][]*kind{}, map[uintptr]string{}
	for _, k := range kinds() {
		store := reflect.ValueOf(k.store).Pointer()
		if names[store] == "" {
			names[store] = k.name
		}
		groups[names[store]] = append(groups[names[store]], k)
	}
	return groups
}
