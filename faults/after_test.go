package faults_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
)

// finals asks for the final state of some mailboxes and of all subjects of the action. Refunds may
// take a while, and a node on a busy machine answers late, so it asks again until the judge finds
// no contradiction or the time is up.
func (s *rig) finals(record *judge.Run) {
	mailboxes := s.load.mailboxesToCheck(s.shape.looks)
	for deadline := time.Now().Add(healthyWithin); ; time.Sleep(200 * time.Millisecond) {
		record.Finals, s.unanswered = nil, nil
		for i, mailbox := range mailboxes {
			url := "/admin/mailboxes/" + mailbox + "@" + domainOf(mailbox)
			s.final(record, judge.Final{For: judge.Send, Subject: mailbox}, s.nodes[i%len(s.nodes)], "GET", url, "", len(s.tiers))
		}
		for i := range subjects {
			name := s.load.subject(i)
			s.final(record, judge.Final{For: judge.Take, Subject: name}, s.nodes[i%len(s.nodes)], "POST", "/actions/act/peek", fmt.Sprintf(`{"subject":%q}`, name), 1)
		}
		contradicts := func(v judge.Violation) bool { return v.Rule == "finals" }
		if time.Now().After(deadline) || len(s.unanswered) == 0 && !slices.ContainsFunc(judge.Judge(record), contradicts) {
			return
		}
	}
}

// final asks a node for a final state, which has so many limits.
func (s *rig) final(record *judge.Run, f judge.Final, n *node, method, path, body string, limits int) {
	f.Span.From = time.Now().UnixMilli()
	r := s.caller.ask(method, *n.url.Load()+path, body, "")
	f.Span.To = time.Now().UnixMilli()
	if r.status != 200 || len(r.said.Limits) != limits {
		s.unanswered = append(s.unanswered, judge.Violation{Rule: "finals", Subject: f.Subject,
			What: fmt.Sprintf("node %d, asked for the final state: %d %s", n.number, r.status, r.kind())})
		return
	}
	for _, limit := range r.said.Limits {
		f.Used = append(f.Used, limit.Limit-limit.Remaining)
	}
	for _, send := range r.said.Sends {
		f.IDs = append(f.IDs, send.ID)
	}
	record.Finals = append(record.Finals, f)
}

// mailboxesToCheck are first those that should have been given back.
func (l *load) mailboxesToCheck(most int) (mailboxes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	chosen := map[string]bool{}
	for _, first := range []bool{true, false} {
		for i := range l.calls {
			c := &l.calls[len(l.calls)-1-i]
			if c.For == judge.Send && !chosen[c.Subject] && (c.Status == 503) == first && len(chosen) < most {
				chosen[c.Subject] = true
				mailboxes = append(mailboxes, c.Subject)
			}
		}
	}
	return mailboxes
}

// searchLogs looks for what no log may hold. Codes it looks for in those of the nodes alone:
// Redis logs numbers, such as offsets, and some are a code by chance.
func (s *rig) searchLogs() []judge.Violation {
	s.relays.mu.Lock()
	for code := range s.relays.everyCode {
		s.load.hide(code)
	}
	s.relays.mu.Unlock()
	s.load.hide(inEverySecret)
	words := maps.Clone(s.load.secret)
	maps.DeleteFunc(words, func(word string, _ bool) bool { return strings.Trim(word, "0123456789") == "" })
	logs := map[string]string{}
	for _, n := range s.nodes {
		logs[fmt.Sprintf("node %d", n.number)] = n.logFile
	}
	return append(s.search(s.redisLogs(), words), s.search(logs, s.load.secret)...)
}

// search looks for these words in the logs of programs.
func (s *rig) search(logs map[string]string, secret map[string]bool) (found []judge.Violation) {
	for program, name := range logs {
		file, err := os.Open(name)
		if err != nil {
			s.t.Fatal(err)
		}
		violations, err := judge.Log(program, file, secret)
		file.Close()
		if err != nil {
			s.t.Error(err)
		}
		found = append(found, violations...)
	}
	return found
}

// redisLogs are the logs of the servers that hold something.
func (s *rig) redisLogs() map[string]string {
	masters, replicas := s.servers()
	logs := map[string]string{}
	for _, server := range slices.Concat(masters, replicas) {
		logs["redis at "+server.Addr] = filepath.Join(server.Dir, "redis.log")
	}
	return logs
}

// logged is what the nodes have said of themselves.
func (s *rig) logged() string {
	var told strings.Builder
	for _, n := range s.nodes {
		text, err := os.ReadFile(n.logFile)
		if err != nil {
			s.t.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, `"msg":"request"`) {
				fmt.Fprintf(&told, "node %d: %s", n.number, line)
			}
		}
	}
	return told.String()
}
