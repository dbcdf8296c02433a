package faults_test

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/internal/must"
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
	r := s.ask(n, method, path, body, "")
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

// searchLogs looks for what no log may hold.
func (s *rig) searchLogs() (found []judge.Violation) {
	s.load.hide(inEverySecret)
	for _, n := range s.nodes {
		file := must.Get(os.Open(n.logFile))(s.t)
		violations, err := judge.Log(fmt.Sprintf("node %d", n.number), file, s.load.secret)
		file.Close()
		if err != nil {
			s.t.Error(err)
		}
		found = append(found, violations...)
	}
	return found
}
