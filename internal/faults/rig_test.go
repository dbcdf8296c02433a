package faults_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
)

// rig is the programs and servers of a run.
type rig struct {
	t      testing.TB
	rng    *rand.Rand // of the run's own goroutine: what its kind chooses
	shape  shape
	dir    string
	tiers  []throttle.Tier
	action throttle.Tier // that callers take

	nodes  []*node
	client *http.Client
	load   *load
	relays []*fault.Server // the first has the faults

	received received

	// Of these there is what the kind's store is.
	alone    *redistest.Server
	proxy    *redistest.FaultyProxy
	cluster  *redistest.ClusterServers
	sentinel *redistest.SentinelServers
	setRedis func(ahead time.Duration) // the server's clock

	masters, replicas []*redistest.Server // as they were before the fault

	figuresBefore, goroutinesBefore []judge.Figure // the load
	stopLoad                        func()
	stopCollecting, stopWatching    func()
	faults, held                    []judge.Span
	recoveries                      []recovery // one for each fault

	noEffect   []judge.Violation // faults
	unanswered []judge.Violation // nodes that did not answer about the final state
	strained   bool              // the machine was too busy
	flooding   atomic.Int64      // answers that a flood has had
}

// policies are what mailboxes may have: windows are far longer than a run, so that no
// mail's way can matter.
var policies = []string{"a=1/10m", "a=3/10m,b=5/1h", "a=2/30m,b=3/4h,c=4/24h"}

// actions are the limits that the action of a run may have. One is over and over again while
// a run lasts.
var (
	actions = []throttle.Tier{{Name: "a", Limit: 5, Window: 10 * time.Minute}, {Name: "a", Limit: 1, Window: 1500 * time.Millisecond}}
	guesses = throttle.Tier{Name: "a", Limit: 3, Window: 10 * time.Minute}
)

// A store makes what the histories are kept in, and returns the settings that say so.
type store func(*rig) []string

func newRig(t testing.TB, k *kind, policy string, seed uint64, sh shape) *rig {
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	s := &rig{t: t, rng: rand.New(rand.NewPCG(seed, 2)), shape: sh, dir: t.TempDir(), client: &http.Client{Transport: transport, Timeout: answerPatience}}
	s.tiers = must.Get(throttle.ParsePolicy(policy))(t).Tiers()
	s.action = actions[int(seed)%len(actions)]
	s.load = newLoad(s, seed)
	if k.terms.ClockSet { // a clock that is set takes a short window with it
		s.action = actions[0]
	}
	relays := s.startRelays()
	environ := slices.Concat([]string{
		"PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=0 atexit_sleep_ms=0",
		"MAILGATE_LISTEN=127.0.0.1:0",
		"MAILGATE_API_KEYS=app:" + apiKey,
		"MAILGATE_ADMIN_KEYS=ops:" + adminKey,
		"MAILGATE_SECRET=" + secret,
		"MAILGATE_SMTP_URL=" + strings.Join(relays, ","),
		"MAILGATE_FROM=Acme <no-reply@acme.example>",
		"MAILGATE_TIERS=" + policy,
		"MAILGATE_GUESSES=a=3/10m",
		"MAILGATE_RULES=" + s.rules(),
		"MAILGATE_LOOKUP_RATE=0",
		"MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0",
		"MAILGATE_SUBMISSION_MAX_CONNECTIONS=2000",
	}, k.store(s), k.environ)
	s.startNodes(k, environ)
	return s
}

// rules is the file that has the action.
func (s *rig) rules() string {
	text := fmt.Sprintf("actions:\n  - name: act\n    limit: %s=%d/%dms\n", s.action.Name, s.action.Limit, s.action.Window.Milliseconds())
	return servertest.Write(s.t, filepath.Join(s.dir, "rules.yaml"), text)
}

func (s *rig) startNodes(k *kind, environ []string) {
	program := k.program
	if program == nil {
		program = mailgate
	}
	path := must.Get(program())(s.t)
	for i := range cmp.Or(k.nodes, 3) {
		n := &node{t: s.t, number: i, command: []string{path, "serve"}, logFile: filepath.Join(s.dir, fmt.Sprintf("node%d.log", i))}
		n.environ = append(slices.Clone(environ), "CLOCK_AHEAD_FILE="+s.clock(i))
		if !k.terms.Refuses { // else it keeps no history of its own
			n.environ = append(n.environ, "MAILGATE_DATA_DIR="+s.data(i))
		}
		if k.within != nil {
			n.command = append(k.within(s), n.command...)
		}
		s.nodes = append(s.nodes, n)
		n.start()
		s.t.Cleanup(n.kill)
	}
}

// data is the data directory of a node.
func (s *rig) data(node int) string { return filepath.Join(s.dir, fmt.Sprintf("data%d", node)) }

// clock is the file that says how many seconds ahead a node's clock is, for programs
// that look at it.
func (s *rig) clock(node int) string { return filepath.Join(s.dir, fmt.Sprintf("clock%d", node)) }

// randomly is any time up to the longest, as the seed has it.
func (s *rig) randomly(longest time.Duration) time.Duration {
	return time.Duration(s.rng.Int64N(int64(longest)))
}

// node is any of the nodes.
func (s *rig) node(rng *rand.Rand) *node { return s.nodes[rng.IntN(len(s.nodes))] }

// onDisk is the disk of the one node.
func onDisk(*rig) []string { return nil }

// inRedis are the settings of a history in Redis. The timeout is one for machines that
// have much else to do.
func inRedis(url string) []string {
	return []string{"MAILGATE_REDIS_URL=" + url, "MAILGATE_REDIS_TIMEOUT=1s"}
}

// onRedis is a single server that keeps what it has.
func onRedis(s *rig) []string {
	s.alone = redistest.Durable(s.t)
	s.masters = []*redistest.Server{s.alone}
	return inRedis(s.alone.URL())
}

// behindProxy is the same behind a proxy.
func behindProxy(s *rig) []string {
	onRedis(s)
	s.proxy = redistest.Proxy(s.t, s.alone.Addr)
	return inRedis(s.proxy.URL())
}

func onCluster(s *rig) []string {
	s.cluster = redistest.Cluster(s.t)
	s.masters, s.replicas = s.cluster.Masters, s.cluster.Replicas
	return inRedis(s.cluster.URL())
}

func onSentinel(s *rig) []string {
	return withSentinel(s, 1)
}

func onTwoReplicas(s *rig) []string { return withSentinel(s, 2) }

func withSentinel(s *rig, replicas int) []string {
	s.sentinel = redistest.Sentinel(s.t, replicas)
	s.replicas = slices.Clone(s.sentinel.Replicas)
	return inRedis(s.sentinel.URL())
}
