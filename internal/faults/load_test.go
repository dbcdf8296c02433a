package faults_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// load is the callers of a run, and their record. Which requests are made, to which nodes and in
// which order follows from the seed; how they overlap does not.
type load struct {
	rig   *rig
	rng   *rand.Rand // of the goroutine that begins requests
	token string     // in every name of this run
	made  int        // names so far
	ends  sync.WaitGroup

	recent []repeatable
	listed []string // mailboxes that were put on the suppression list

	mu     sync.Mutex
	calls  []judge.Call
	secret map[string]bool // words that may be in no log
	takes  int             // the first of the calls that may be a take to give back
}

// A repeatable is a request with a key.
type repeatable struct{ mailbox, key, body string }

const (
	hotMailboxes = 12
	subjects     = 8
	domains      = 8
)

func newLoad(s *rig, seed uint64) *load {
	return &load{
		rig: s, rng: rand.New(rand.NewPCG(seed, 1)),
		token: fmt.Sprintf("q%sz", strings.ToLower(fmt.Sprintf("%06x", rand.Uint32()&0xffffff))), secret: map[string]bool{},
	}
}

// begin begins what is next in the mix.
func (l *load) begin() {
	node := l.rig.node(l.rng)
	switch p := l.rng.IntN(100); {
	case p < 21:
		l.send(node, l.newMailbox())
	case p < 42:
		l.submit(node, l.newMailbox())
	case p < 49:
		l.send(node, l.hotMailbox())
	case p < 56:
		l.submit(node, l.hotMailbox())
	case p < 68:
		l.repeat(node)
	case p < 78:
		l.look(node)
	case p < 88:
		l.verify(node)
	case p < 93:
		l.list(node)
	default:
		l.act(node)
	}
}

func (l *load) newMailbox() string {
	l.made++
	return fmt.Sprintf("%sn%d", l.token, l.made)
}

// hotMailbox is one that many ask for at once, by both doors.
func (l *load) hotMailbox() string {
	return fmt.Sprintf("%sh%d", l.token, l.rng.IntN(hotMailboxes))
}

// spelled is an address of a mailbox: it has many.
func (l *load) spelled(mailbox string) string {
	local := mailbox
	switch l.rng.IntN(4) {
	case 0:
		local = strings.ToUpper(local)
	case 1:
		local += "+" + fmt.Sprint(l.rng.IntN(9))
	}
	return local + "@" + domainOf(mailbox)
}

// domainOf spreads mailboxes over domains, of which one may not have all connections.
func domainOf(mailbox string) string {
	sum := 0
	for _, c := range mailbox {
		sum += int(c)
	}
	return fmt.Sprintf("d%d.example", sum%domains)
}

// body is that of a request to send; some callers make their codes themselves.
func (l *load) body(mailbox string) string {
	l.hide(mailbox)
	if l.rng.IntN(3) > 0 {
		return fmt.Sprintf(`{"email":%q}`, l.spelled(mailbox))
	}
	code := fmt.Sprintf("%s%04d", strings.ToUpper(l.token[1:7]), l.rng.IntN(10_000))
	l.hide(code)
	return fmt.Sprintf(`{"email":%q,"code":%q}`, l.spelled(mailbox), code)
}

func (l *load) hide(word string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secret[strings.ToLower(word)] = true
}

func (l *load) send(n *node, mailbox string) {
	body := l.body(mailbox)
	l.ends.Go(func() { l.sendNow(n, mailbox, "", body) })
}

func (l *load) sendNow(n *node, mailbox, key, body string) judge.Call {
	return l.ask(n, "POST", "/send-code", body, judge.Call{For: judge.Send, Subject: mailbox, Key: key})
}

// repeat sends with a key: a new one, twice at once by two nodes, or one of before.
func (l *load) repeat(n *node) {
	if known := len(l.recent); known > 0 && l.rng.IntN(2) == 0 {
		again := l.recent[max(0, known-1-l.rng.IntN(20))]
		l.ends.Go(func() { l.sendNow(n, again.mailbox, again.key, again.body) })
		return
	}
	mailbox := l.newMailbox()
	first := repeatable{mailbox, "key-" + mailbox, l.body(mailbox)}
	l.recent = append(l.recent, first)
	l.ends.Go(func() { l.sendNow(n, mailbox, first.key, first.body) })
	if l.rng.IntN(2) == 0 {
		other := l.rig.node(l.rng)
		l.ends.Go(func() { l.sendNow(other, mailbox, first.key, first.body) })
	}
}

// recentMailbox is a mailbox that was sent to not long ago.
func (l *load) recentMailbox() string {
	if l.made == 0 {
		return l.newMailbox()
	}
	return fmt.Sprintf("%sn%d", l.token, max(1, l.made-l.rng.IntN(40)))
}

func (l *load) look(n *node) {
	mailbox := l.recentMailbox()
	l.begins(n, "GET", "/mailboxes/"+mailbox+"@"+domainOf(mailbox), "", judge.Call{For: judge.Look, Subject: mailbox})
}

// wrongCode is one that hardly any email has.
const wrongCode = "000000"

// verify tries a code: the right one, if it has been mailed, or a wrong one.
func (l *load) verify(n *node) {
	mailbox, wrong := l.recentMailbox(), l.rng.IntN(3) == 0
	mailed, ok := l.rig.codeOf(mailbox)
	code, right := mailed.code, ok && !wrong
	if !right {
		code = wrongCode
	}
	address := mailbox + "@" + domainOf(mailbox)
	if right {
		address = mailed.to
	}
	l.begins(n, "POST", "/verify-code", fmt.Sprintf(`{"email":%q,"code":%q}`, address, code),
		judge.Call{For: judge.Verify, Subject: mailbox, Code: code, Right: right})
}

// act takes an action, looks at it, or gives one back.
func (l *load) act(n *node) {
	subject := l.subject(l.rng.IntN(subjects))
	l.hide(subject)
	body := fmt.Sprintf(`{"subject":%q}`, subject)
	switch l.rng.IntN(4) {
	case 0:
		if one, ok := l.takeBack(); ok {
			l.begins(n, "POST", "/actions/act/release", fmt.Sprintf(`{"subject":%q,"id":%q}`, one.Subject, one.ID),
				judge.Call{For: judge.Release, Subject: one.Subject, ID: one.ID})
		}
	case 1:
		l.begins(n, "POST", "/actions/act/peek", body, judge.Call{For: judge.Look, Subject: subject})
	default:
		l.begins(n, "POST", "/actions/act/take", body, judge.Call{For: judge.Take, Subject: subject})
	}
}

// subject is the n-th subject of the action.
func (l *load) subject(n int) string { return fmt.Sprintf("%ss%d", l.token, n) }

// takeBack returns a take of the load that was not given back yet.
func (l *load) takeBack() (one judge.Call, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; l.takes < len(l.calls); l.takes++ {
		if one := l.calls[l.takes]; one.For == judge.Take && one.Status == 200 && strings.HasPrefix(one.Subject, l.token+"s") {
			l.takes++
			return one, true
		}
	}
	return one, false
}

// list puts a mailbox on the suppression list, takes it off, or sends to one that was on it.
func (l *load) list(n *node) {
	known := l.listed
	if len(known) == 0 || l.rng.IntN(3) == 0 {
		mailbox := l.newMailbox()
		l.listed = append(known, mailbox)
		l.change(n, "PUT", mailbox, judge.Suppress)
		return
	}
	mailbox := known[l.rng.IntN(len(known))]
	switch l.rng.IntN(5) {
	case 0:
		l.change(n, "DELETE", mailbox, judge.Lift)
	case 1:
		l.submit(n, mailbox)
	default:
		l.send(n, mailbox)
	}
}

func (l *load) change(n *node, method, mailbox string, what judge.Purpose) {
	l.hide(mailbox)
	l.begins(n, method, "/admin/suppressions/"+mailbox+"@"+domainOf(mailbox), "", judge.Call{For: what, Subject: mailbox})
}

// begins asks a node, and does not wait for the answer.
func (l *load) begins(n *node, method, path, body string, call judge.Call) {
	l.ends.Go(func() { l.ask(n, method, path, body, call) })
}

// ask asks a node and puts the call on record.
func (l *load) ask(n *node, method, path, body string, call judge.Call) judge.Call {
	call.Node = n.number
	call.Span.From = time.Now().UnixMilli()
	r := l.rig.ask(n, method, path, body, call.Key)
	call.Span.To = time.Now().UnixMilli()
	call.Status, call.Kind, call.ID, call.Degraded, call.Replayed = r.status, r.kind(), cmp.Or(r.said.ID, call.ID), r.said.Degraded, r.replayed
	call.Released = r.said.Released
	if !r.said.Time.IsZero() {
		call.Clock, call.Limit, call.Wait = r.said.Time.UnixMilli(), r.said.Limit, r.said.Wait
	}
	if call.Key != "" {
		call.Body = string(r.text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call)
	return call
}
