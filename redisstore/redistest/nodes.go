package redistest

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// node is a line of CLUSTER NODES: what one node knows of one node.
type node struct {
	id, addr string
	myself   bool
	master   bool
	failing  bool   // or so it is thought
	linked   bool   // and known for good, not only just met
	follows  string // the id of its master
	epoch    uint64
	ranges   [][2]int // slots, both ends included
}

func askNodes(s *Server) ([]node, error) { return askNodesWithin(s, askLimit) }

func askNodesWithin(s *Server, limit time.Duration) ([]node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	text, err := s.Client().ClusterNodes(ctx).Result()
	if err != nil {
		return nil, err
	}
	var nodes []node
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		n, err := parseNode(line)
		if err != nil {
			return nil, fmt.Errorf("reading %q of CLUSTER NODES: %w", line, err)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// parseNode reads "id ip:port@bus flags master ping pong epoch link slots…".
func parseNode(line string) (node, error) {
	fields := strings.Fields(line)
	if len(fields) < 8 {
		return node{}, errors.New("too few fields")
	}
	n := node{id: fields[0], follows: fields[3], linked: fields[7] == "connected"}
	n.addr, _, _ = strings.Cut(fields[1], "@")
	for _, flag := range strings.Split(fields[2], ",") {
		switch flag {
		case "myself":
			n.myself = true
		case "master":
			n.master = true
		case "fail", "fail?":
			n.failing = true
		case "handshake", "noaddr":
			n.linked = false
		}
	}
	var err error
	if n.epoch, err = strconv.ParseUint(fields[6], 10, 64); err != nil {
		return node{}, err
	}
	for _, field := range fields[8:] {
		if strings.HasPrefix(field, "[") { // a slot on its way, still where it was
			continue
		}
		slots, err := parseRange(field)
		if err != nil {
			return node{}, err
		}
		n.ranges = append(n.ranges, slots)
	}
	return n, nil
}

// parseRange reads "7" or "0-5460".
func parseRange(text string) (slots [2]int, err error) {
	first, last, several := strings.Cut(text, "-")
	if !several {
		last = first
	}
	if slots[0], err = strconv.Atoi(first); err != nil {
		return slots, err
	}
	slots[1], err = strconv.Atoi(last)
	return slots, err
}

// owns says whether the node is the master for a slot.
func (n node) owns(slot int) bool {
	for _, r := range n.ranges {
		if n.master && r[0] <= slot && slot <= r[1] {
			return true
		}
	}
	return false
}

// describe gives, in one line that is the same for the same roles, which slots
// each master has and who follows whom. It is an error if one of the servers
// that run is missing or thought to fail, or a slot is left to one that does
// not run.
func (c *ClusterServers) describe(nodes []node) (string, error) {
	byID := map[string]node{}
	for _, n := range nodes {
		byID[n.id] = n
	}
	var roles []string
	covered := 0
	for _, s := range c.live() {
		n, known := byID[c.ids[s]]
		if !known || !n.linked || n.failing {
			return "", fmt.Errorf("%s is not in its place", s.Addr)
		}
		if !n.master {
			roles = append(roles, n.addr+" follows "+n.follows)
			continue
		}
		roles = append(roles, fmt.Sprint(n.addr, " has ", n.ranges))
		for _, r := range n.ranges {
			covered += r[1] - r[0] + 1
		}
	}
	if covered != slots {
		return "", fmt.Errorf("%d of %d slots have a master that runs", covered, slots)
	}
	sort.Strings(roles)
	return strings.Join(roles, ", "), nil
}

// slotOf is the slot of a key, which every node can tell.
func (c *ClusterServers) slotOf(key string) int {
	c.t.Helper()
	slot, err := strconv.Atoi(c.must(c.live()[0], "CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.t.Fatalf("cannot learn the slot of a key: %v", err)
	}
	return slot
}
