package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// figuresOf is what a test reads of the figures.
type figuresOf struct {
	AllNodes bool           `json:"all_nodes"`
	Sends    map[string]int `json:"sends"`
	LastHour struct {
		Sent []int `json:"sent"`
	} `json:"last_hour"`
	Nodes []struct {
		Node         string `json:"node"`
		Away         bool   `json:"away"`
		Suppressions string `json:"suppressions_read"`
	} `json:"nodes"`
}

// The chart of the last hour goes on after a restart.
func TestNodes_Restarted_ChartGoesOn(t *testing.T) {
	t.Parallel()
	redis, relay, at := redistest.Durable(t), startRelay(t), servertest.Address(t)
	environ := besideRedis(t, redis, relay.URL(), "MAILGATE_LISTEN="+at, "MAILGATE_REDIS_PREFIX=chart")
	first := startReady(t, environ, at)
	first.Stop(t, syscall.SIGTERM)
	name := must.Get(os.Hostname())(t) + at[strings.LastIndex(at, ":"):]
	client := redis.Client()
	told := must.Get(client.HGet(t.Context(), "chart:nodes", name).Result())(t)
	must.OK(t, client.HSet(t.Context(), "chart:nodes", name, strings.Replace(told, `"sent":[0,0,0,`, `"sent":[0,0,7,`, 1)).Err())
	ops := newClient(t, startReady(t, environ, at).URL, adminKey)
	servertest.Eventually(t, "what was sent before the restart", func() bool {
		var f figuresOf
		must.OK(t, json.Unmarshal([]byte(ops.must(t, "GET", "/admin/figures", "", 200).Raw), &f))
		return slices.Max(f.LastHour.Sent) == 7
	})
}

// Whichever node operators ask, they see what all did, also one that was killed; and while Redis is away what this one did.
func TestNodes_OneKilled_AllAreShown(t *testing.T) {
	t.Parallel()
	redis, relay := redistest.Durable(t), startRelay(t)
	var nodes []*process
	var addresses, names []string
	host := must.Get(os.Hostname())(t)
	for range 3 {
		at := servertest.Address(t)
		addresses, names = append(addresses, at), append(names, host+at[strings.LastIndex(at, ":"):])
		nodes = append(nodes, startReady(t, besideRedis(t, redis, relay.URL(), "MAILGATE_LISTEN="+at, "MAILGATE_TRUSTED_PROXIES=127.0.0.0/8"), at))
	}
	urls := []string{nodes[0].URL, nodes[1].URL, nodes[2].URL}
	if _, err := exec.LookPath("nginx"); err == nil {
		at := startProxy(t, "nginx", addresses)
		urls = []string{at, at, at}
	}
	for i := range 9 {
		newClient(t, urls[i%3], apiKey).mustSend(t, fmt.Sprintf("u%d@example.com", i), 200)
	}
	newClient(t, urls[0], apiKey).mustSend(t, "u0@example.com", 429)
	asked := operatorOf(nodes[2].URL)
	var counts map[string]int
	servertest.Eventually(t, "the requests of all nodes", func() bool {
		counts = map[string]int{}
		for line := range strings.Lines(does(t, asked, exitOK, "", "requests", "--json")) {
			var one struct{ Node string }
			must.OK(t, json.Unmarshal([]byte(line), &one))
			counts[one.Node]++
		}
		return counts[names[0]]+counts[names[1]]+counts[names[2]] == 10
	})
	ops := newClient(t, nodes[2].URL, adminKey)
	figures := func() (f figuresOf) {
		must.OK(t, json.Unmarshal([]byte(ops.must(t, "GET", "/admin/figures", "", 200).Raw), &f))
		return f
	}
	servertest.Eventually(t, "the figures of all nodes", func() bool { return figures().Sends["sent"] == 9 })
	nodes[0].Stop(t, syscall.SIGKILL)
	if n := strings.Count(does(t, asked, exitOK, "", "requests", "--node", names[0]), "\n") - 1; n != counts[names[0]] || n == 0 {
		t.Errorf("%d lines are of the killed node, which did %d", n, counts[names[0]])
	}
	if found := does(t, asked, exitOK, "Z  "+names[1]+" sent ", "requests"); strings.Index(found, "NODE") != strings.Index(found, "Z  "+host)-strings.Index(found, "\n")+2 {
		t.Errorf("a node has no column:\n%s", found)
	}
	if found := does(t, asked, exitOK, "", "requests", "u0@example.com"); strings.Count(found, "\n") != 3 || !strings.Contains(found, "quota-exceeded") {
		t.Errorf("of one mailbox\n%s", found)
	}
	servertest.Eventually(t, "the killed node is away", func() bool {
		away := 0
		for _, one := range figures().Nodes {
			if one.Away == (one.Node == names[0]) && one.Suppressions != "" {
				away++
			}
		}
		return away == 3
	})
	f := figures()
	sent := 0
	for _, n := range f.LastHour.Sent {
		sent = max(sent, n)
	}
	if f.Sends["sent"] != 9 || sent != 9 || !f.AllNodes {
		t.Errorf("%+v", f)
	}
	if most := ops.must(t, "GET", "/admin/requests/refused", "", 200).Raw; !strings.Contains(most, `"count":1}`) {
		t.Errorf("most refused: %s", most)
	}
	redis.Kill()
	servertest.Eventually(t, "requests without Redis", func() bool {
		return strings.HasPrefix(ops.must(t, "GET", "/admin/requests", "", 200).Raw, `{"all_nodes":false`)
	})
	own := does(t, asked, exitOK, "mailgate: these are of one node alone", "requests")
	if n := strings.Count(own, "\n") - 1; n != counts[names[2]] || figures().AllNodes {
		t.Errorf("while Redis is away:\n%s, want %d lines", own, counts[names[2]])
	}
}
