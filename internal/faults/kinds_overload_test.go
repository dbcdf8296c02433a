package faults_test

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// overloadKinds make nodes late while Redis is healthy. A late node may answer 503, but it
// must not decide without Redis: a mailbox, or an Idempotency-Key, gets one email at most.
var overloadKinds = []*kind{
	overload("flood-metrics", flooded, flood(200, "", "GET /metrics")),
	overload("flood-pages", flooded, flood(600, "", "GET /docs", "GET /openapi.yaml", "GET /countdown.js", "GET /admin", "GET /readyz", "GET /nowhere")),
	overload("flood-countdown", flooded, flood(1500, "", "GET /countdown/abc")),
	overload("flood-key", flooded, flood(300, floodKey, "POST /verify-code")),
	overload("pause", slow, (*rig).pauseNodes),
	yielding(overload("neighbour", slow, (*rig).takeProcessors)),
}

// floodKey is an API key of its own, so that the limits of one key spare the other callers.
const floodKey = "flood-Hush-7f3b-9d21-c460"

// overload is a kind with the default timeout, alone on the machine. A node that is too late
// to read a request closes its connection, so some calls may have no answer.
func overload(name string, seen effect, inject func(*rig) func()) *kind {
	return &kind{
		name: name, store: onRedis, solo: true, brief: true, effect: seen, inject: inject,
		terms:   judge.Terms{Gone: true, Fails: append([]string{"busy"}, noHistory...)},
		environ: []string{"MAILGATE_REDIS_TIMEOUT=250ms", "MAILGATE_API_KEYS=app:" + apiKey + ",flood:" + floodKey},
	}
}

// yielding has the nodes run at a lower priority than Redis, so that a neighbour makes them
// late and not Redis.
func yielding(k *kind) *kind {
	k.within = func(*rig) []string { return []string{"nice", "-n", "10"} }
	return k
}

// In a run there are so many bursts, of so many mailboxes.
const (
	burstCount     = 3
	burstEvery     = 500 * time.Millisecond
	burstMailboxes = 60
)

func (s *rig) bursts() {
	for i := range burstCount {
		s.burst(i)
		time.Sleep(burstEvery)
	}
}

// burst asks all nodes at once for each of some new mailboxes. Where the tiers would allow a
// second email, each mailbox has an Idempotency-Key.
func (s *rig) burst(number int) {
	for i := range burstMailboxes {
		mailbox, key := fmt.Sprintf("%sb%dx%d", s.load.token, number, i), ""
		if s.tiers[0].Limit > 1 {
			key = "key-" + mailbox
		}
		s.load.hide(mailbox)
		for _, n := range s.nodes {
			s.load.ends.Go(func() {
				s.load.sendNow(n, mailbox, key, fmt.Sprintf(`{"email":"%s@%s"}`, mailbox, domainOf(mailbox)))
			})
		}
	}
}

// flood has callers repeat the requests, one each, to each node as fast as they are answered.
// With a key the body is invalid: such requests are the fastest to repeat, and ask nothing of
// Redis.
func flood(callers int, key string, requests ...string) func(*rig) func() {
	return func(s *rig) func() {
		quit := make(chan struct{})
		var clients []*fasthttp.HostClient
		var ended sync.WaitGroup
		for _, n := range s.nodes {
			client := &fasthttp.HostClient{Addr: strings.TrimPrefix(*n.url.Load(), "http://"), MaxConns: callers}
			clients = append(clients, client)
			for i := range callers {
				ended.Go(func() { s.repeatUntil(quit, client, requests[i%len(requests)], key) })
			}
		}
		end := sync.OnceFunc(func() {
			close(quit)
			ended.Wait()
			for _, client := range clients {
				client.CloseIdleConnections()
			}
		})
		s.t.Cleanup(end)
		servertest.Eventually(s.t, "the flood to be answered", func() bool { return s.flooding.Load() >= int64(callers) })
		s.bursts()
		return end
	}
}

// repeatUntil is one caller of a flood.
func (s *rig) repeatUntil(quit chan struct{}, client *fasthttp.HostClient, request, key string) {
	var ask fasthttp.Request
	var answer fasthttp.Response
	method, path, _ := strings.Cut(request, " ")
	ask.SetRequestURI("http://" + client.Addr + path)
	ask.Header.SetMethod(method)
	if key != "" {
		ask.Header.Set("Authorization", "Bearer "+key)
		ask.Header.SetContentType("application/json")
		ask.SetBodyString("{}")
	}
	for {
		select {
		case <-quit:
			return
		default:
			if client.DoTimeout(&ask, &answer, answerPatience) == nil {
				s.flooding.Add(1)
			} else {
				time.Sleep(10 * time.Millisecond) // the node closed the connection
			}
		}
	}
}

// flooded: the flood was answered.
var flooded = counts(1, func(s *rig) int { return int(s.flooding.Load()) })

// slow: an answer took longer than any does on a machine with time for it.
var slow = answers(func(c *judge.Call) bool { return c.Span.To-c.Span.From >= 200 })

// pauseNodes stops all nodes for 400 ms in each burst, soon after its begin.
func (s *rig) pauseNodes() func() {
	for i := range burstCount {
		s.burst(i)
		time.Sleep(s.randomly(40 * time.Millisecond))
		for _, n := range s.nodes {
			n.Signal(s.t, syscall.SIGSTOP)
		}
		time.Sleep(400 * time.Millisecond)
		for _, n := range s.nodes {
			n.Signal(s.t, syscall.SIGCONT)
		}
		time.Sleep(burstEvery)
	}
	return noRepair
}

// takeProcessors has busy processes compete with the nodes.
func (s *rig) takeProcessors() func() {
	var busy []*exec.Cmd
	for range 2 * runtime.NumCPU() {
		one := exec.Command("sh", "-c", "while :; do :; done")
		must.Get(servertest.StartProcess(one))(s.t)
		busy = append(busy, one)
	}
	end := sync.OnceFunc(func() {
		for _, one := range busy {
			_ = one.Process.Kill()
		}
	})
	s.t.Cleanup(end)
	s.bursts()
	return end
}
