package faults_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
	"github.com/mailgate/mailgate/internal/redistest"
)

// standings looks at the mailboxes that were answered with a no that costs nothing, at some
// others, and at all subjects of the action, and puts on record how they stand. A place may
// take a while to be given back, and a node on a busy machine to answer, so that they are
// looked at again until the judge is content, or the time is up.
func (s *stand) standings(record *judge.Run) {
	mailboxes := s.load.worthALook(s.shape.looks)
	for deadline := time.Now().Add(wellWithin); ; time.Sleep(200 * time.Millisecond) {
		record.Standings, record.Subjects, s.untold = nil, nil, nil
		for i, mailbox := range mailboxes {
			if one, ok := s.standing(s.nodes[i%len(s.nodes)], mailbox); ok {
				record.Standings = append(record.Standings, one)
			}
		}
		for i := range subjects {
			if one, ok := s.subject(s.nodes[i%len(s.nodes)], s.load.subject(i)); ok {
				record.Subjects = append(record.Subjects, one)
			}
		}
		if time.Now().After(deadline) || len(s.untold) == 0 && !contradicts(judge.Judge(record)) {
			return
		}
	}
}

func contradicts(found []judge.Violation) bool {
	for _, v := range found {
		if v.Rule == "standings" {
			return true
		}
	}
	return false
}

// standsWith has a node's answer to a question about the end, if it is one.
func (s *stand) standsWith(n *node, r reply, limits int) bool {
	ok := r.status == 200 && len(r.said.Limits) == limits
	if !ok {
		s.untold = append(s.untold, judge.Violation{Rule: "standings",
			What: fmt.Sprintf("node %d, asked how all stands in the end: %d %s", n.number, r.status, r.kind())})
	}
	return ok
}

func (s *stand) subject(n *node, name string) (judge.Subject, bool) {
	one := judge.Subject{Name: name, Span: judge.Span{From: time.Now().UnixMilli()}}
	r := s.caller.ask("POST", *n.url.Load()+"/actions/act/peek", fmt.Sprintf(`{"subject":%q}`, name), "")
	one.Span.To = time.Now().UnixMilli()
	if !s.standsWith(n, r, 1) {
		return one, false
	}
	one.Used = r.said.Limits[0].Limit - r.said.Limits[0].Remaining
	return one, true
}

func (s *stand) standing(n *node, mailbox string) (judge.Standing, bool) {
	r := s.caller.ask("GET", *n.url.Load()+"/admin/mailboxes/"+mailbox+"@"+domainOf(mailbox), "", "")
	one := judge.Standing{Mailbox: mailbox, Used: make([]int, len(s.tiers))}
	if !s.standsWith(n, r, len(s.tiers)) {
		return one, false
	}
	for i, limit := range r.said.Limits {
		one.Used[i] = limit.Limit - limit.Remaining
	}
	for _, send := range r.said.Sends {
		one.IDs = append(one.IDs, send.ID)
	}
	return one, true
}

// worthALook are mailboxes to look at: first those that should have been given back.
func (l *load) worthALook(most int) (mailboxes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	chosen := map[string]bool{}
	for _, first := range []bool{true, false} {
		for i := range l.calls {
			c := &l.calls[len(l.calls)-1-i]
			if c.For != judge.Send || chosen[c.Subject] || (c.Status == 503) != first || len(chosen) >= most {
				continue
			}
			chosen[c.Subject] = true
			mailboxes = append(mailboxes, c.Subject)
		}
	}
	return mailboxes
}

// searchLogs looks for what no log may hold. Codes it looks for in those of the nodes alone:
// Redis logs numbers, such as offsets, and some are a code by chance.
func (s *stand) searchLogs() []judge.Violation {
	s.post.mu.Lock()
	for code := range s.post.everyCode {
		s.load.hide(code)
	}
	s.post.mu.Unlock()
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
func (s *stand) search(logs map[string]string, secret map[string]bool) (found []judge.Violation) {
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
func (s *stand) redisLogs() map[string]string {
	var servers []*redistest.Server
	switch {
	case s.alone != nil:
		servers = append(servers, s.alone)
	case s.cluster != nil:
		servers = append(append(servers, s.cluster.Masters...), s.cluster.Replicas...)
	case s.sentinel != nil:
		servers = append(servers, s.sentinel.Master, s.sentinel.Replica)
	}
	logs := map[string]string{}
	for _, server := range servers {
		logs["redis at "+server.Addr] = filepath.Join(server.Dir, "redis.log")
	}
	return logs
}

// logged is what the nodes have said of themselves.
func (s *stand) logged() string {
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
