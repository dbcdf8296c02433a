package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// startRedis starts a server that keeps nothing.
func (b *bench) startRedis() *process {
	addr, port := freeAddr()
	return b.start(exec.CommandContext(b.ctx, "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", b.dir,
		"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"), addr, listening)
}

// hot is so many subjects that each is refused more than a hundred times a second.
const hot = 50

// decisionsOnRedis compares POST /actions/bench/take with POST /json of Envoy's ratelimit, on
// one Redis and with the same three limits. All subjects have just been admitted once, so they are refused for an hour.
// Both remember that: Envoy's in its local cache, which is how it is run.
func decisionsOnRedis(b *bench) []row {
	path := os.Getenv("BENCH_ENVOY_RATELIMIT")
	if path == "" {
		var err error
		if path, err = b.build("envoy", "github.com/envoyproxy/ratelimit/src/service_cmd"); err != nil {
			return []row{{name: "decision on Redis", skipped: "Envoy's ratelimit cannot be built; BENCH_ENVOY_RATELIMIT can name its program"}}
		}
	}
	server := b.startRedis()
	ours, envoy := b.startOnRedis(server.addr), b.startEnvoy(path, server.addr)
	b.openLoad(ours.addr, visitors, takeAction(known), http.StatusOK).send(known)
	b.openLoad(envoy.addr, visitors, takeEnvoy, http.StatusOK).send(known)
	samples := alternate(*rounds,
		b.openLoad(ours.addr, visitors, takeAction(known), http.StatusTooManyRequests).on(ours),
		b.openLoad(envoy.addr, visitors, takeEnvoy, http.StatusTooManyRequests).on(envoy),
		b.openLoad(ours.addr, visitors, takeAction(hot), http.StatusTooManyRequests).besideRedis(ours, server))
	used, asked := measures(samples[2], ofRedis), measures(samples[2], commands)
	return []row{
		compare("decision on Redis", "decisions/s", "Envoy ratelimit", rate, samples[0], samples[1], atLeast(1.5)),
		compare("decision on Redis, processor", "µs", "Envoy ratelimit", processor, samples[0], samples[1], atMost(0.6)),
		compareFixed("refusal in a flood, commands of Redis", "commands", "at most", asked, 0.02, atMost(1)),
		compareFixed("refusal in a flood, processor of Redis", "µs", "5 % at 50,000/s", used, 1, atMost(1)),
	}
}

// besideRedis is on, and measures what Redis does meanwhile.
func (l *load) besideRedis(p, server *process) side {
	client := redis.NewClient(&redis.Options{Addr: server.addr})
	round := l.on(p)
	return func() sample {
		first, used, ran := l.next.Load(), server.processor(), commandsOf(client)
		s := round()
		answered := float64(l.next.Load() - first)
		s.redis = float64((server.processor() - used).Microseconds()) / answered
		s.commands = float64(commandsOf(client)-ran) / answered
		return s
	}
}

// commandsOf returns how many scripts a server has run.
func commandsOf(client *redis.Client) int {
	info := must(client.Info(context.Background(), "commandstats").Result())
	return must(strconv.Atoi(regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`).FindStringSubmatch(info)[1]))
}

// startOnRedis starts mailgate with an action. The relay is not asked before the first email.
func (b *bench) startOnRedis(redis string) *process {
	rules := filepath.Join(b.dir, "rules.yaml")
	check(os.WriteFile(rules, []byte("actions: [{name: bench, limit: 'hour=1/1h,day=5/24h,week=10/168h'}]\n"), 0o600))
	return b.startMailgate("127.0.0.1:1", "MAILGATE_REDIS_URL=redis://"+redis, "MAILGATE_RULES="+rules,
		"MAILGATE_SECRET=bench-0c51e6a2f74b")
}

// startEnvoy starts Envoy's ratelimit with its default settings, but for a local cache, a directory that
// is not replaced while it runs and statistics that are not sent.
func (b *bench) startEnvoy(path, redis string) *process {
	config := filepath.Join(b.dir, "envoy", "config")
	check(os.MkdirAll(config, 0o700))
	check(os.WriteFile(filepath.Join(config, "bench.yaml"), []byte(`domain: bench
descriptors:
  - {key: hour, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: day, rate_limit: {unit: day, requests_per_unit: 5}}
  - {key: week, rate_limit: {unit: week, requests_per_unit: 10}}
`), 0o600))
	addr, port := freeAddr()
	_, grpc := freeAddr()
	_, debug := freeAddr()
	cmd := exec.CommandContext(b.ctx, path)
	cmd.Env = []string{
		"USE_STATSD=false", "LOCAL_CACHE_SIZE_IN_BYTES=67108864", "RUNTIME_WATCH_ROOT=false", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis, "RUNTIME_ROOT=" + filepath.Dir(config),
		"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "PORT=" + port, "GRPC_PORT=" + grpc, "DEBUG_PORT=" + debug,
	}
	return b.start(cmd, addr, healthy("/healthcheck"))
}

func takeAction(subjects int64) func(n int64) string {
	return post("/actions/bench/take", func(n int64) string {
		return `{"subject":"` + mailbox(among(subjects)(n)) + `"}`
	})
}

var takeEnvoy = post("/json", func(n int64) string {
	value := `","value":"` + mailbox(among(known)(n)) + `"}]}`
	return `{"domain":"bench","descriptors":[{"entries":[{"key":"hour` + value + `,{"entries":[{"key":"day` + value +
		`,{"entries":[{"key":"week` + value + `]}`
})
