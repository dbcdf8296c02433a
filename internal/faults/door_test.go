package faults_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// manner is how a caller of the SMTP door behaves.
type manner int

const (
	patient manner = iota
	leaves         // when its recipient was accepted, without a text
	loses          // the reply to the text, and sends the same email again
)

// email is one that is submitted; its text ends with its final dot, and is the same in each repeat.
type email struct{ to, text string }

// submit sends one email through the SMTP door. Its admission is known by its Message-ID.
func (l *load) submit(n *node, mailbox string) {
	l.hide(mailbox)
	to, id, how, next := l.spelled(mailbox), l.token+fmt.Sprint("m", l.rng.Uint32()), patient, l.rig.node(l.rng)
	switch l.rng.IntN(8) {
	case 0:
		how = leaves
	case 1:
		how = loses
	}
	e := email{to, fmt.Sprintf("From: no-reply@acme.example\r\nMessage-ID: <%s.door@acme.example>\r\nDate: %s\r\nSubject: hello\r\n\r\nhello\r\n.",
		id, time.Now().Format(time.RFC1123Z))}
	l.ends.Go(func() {
		call := l.submitNow(n, judge.Call{For: judge.Send, Door: true, Subject: mailbox, ID: id}, e, how)
		if how != loses {
			return
		}
		for range mostRepeats {
			call = l.submitNow(next, judge.Call{For: judge.Send, Door: true, Replayed: true, Subject: mailbox, ID: id}, e, patient)
			if call.Kind != judge.StillSent {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
}

// mostRepeats bounds how often an email is repeated that is still being sent.
const mostRepeats = 25

func (l *load) submitNow(n *node, call judge.Call, e email, how manner) judge.Call {
	call.Node = n.number
	call.Span.From = time.Now().UnixMilli()
	call.Status, call.Kind, call.Limit, call.Wait = converse(*n.door.Load(), e, how)
	call.Span.To = time.Now().UnixMilli()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, call)
	return call
}

// converse returns what comes of an email, as the HTTP door would say it.
func converse(door string, e email, how manner) (status int, kind, limit string, wait int64) {
	conn, err := net.Dial("tcp", door)
	if err != nil {
		return 0, judge.NotAsked, "", 0
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerPatience))
	in := bufio.NewReader(conn)
	said, err := replyOf(in)
	for _, line := range []string{"EHLO campaign.example", "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00app\x00"+apiKey)), "MAIL FROM:<no-reply@acme.example>"} {
		if err == nil && said[0] < '4' {
			said, err = ask(conn, in, line)
		}
	}
	if err != nil {
		return 0, judge.NotAsked, "", 0
	}
	for i, line := range []string{"RCPT TO:<" + e.to + ">", "DATA", e.text} {
		if err != nil || said[0] >= '4' {
			break
		}
		if i == 1 && how == leaves {
			return 499, judge.Abandoned, "", 0
		}
		said, err = ask(conn, in, line)
		if i == 2 && how == loses {
			return 0, judge.Lost, "", 0
		}
	}
	if err == nil {
		_, _ = io.WriteString(conn, "QUIT\r\n")
	}
	return meaning(said, err)
}

func ask(conn net.Conn, in *bufio.Reader, line string) (string, error) {
	if _, err := io.WriteString(conn, line+"\r\n"); err != nil {
		return "", err
	}
	return replyOf(in)
}

// replyOf is the last line of a reply.
func replyOf(in *bufio.Reader) (string, error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil || len(line) > 3 && line[3] == ' ' {
			return line, err
		}
	}
}

var limited = regexp.MustCompile(`^550 5\.7\.1 limit "(\w+)" of this mailbox reached; next email in (\d+) ms`)

// meaning is what a reply to a recipient or to a text says.
func meaning(said string, err error) (status int, kind, limit string, wait int64) {
	if err != nil {
		return 0, "", "", 0
	}
	if of := limited.FindStringSubmatch(said); of != nil {
		wait, _ := strconv.ParseInt(of[2], 10, 64) // digits
		return 429, "quota-exceeded", of[1], wait
	}
	for _, one := range []struct {
		begins, kind string
		status       int
	}{
		{"250 ", "", 200},
		{"451 4.3.2 this email is being sent", judge.StillSent, 409},
		{"451 4.3.0", "store-unavailable", 503},
		{"451 4.4.1", "relay-unavailable", 503},
		{"421 ", "", 0}, // the connection ends, as at a shutdown
		{"4", "busy", 503},
		{"554 5.4.0", "delivery-unknown", 504},
		{"550 5.7.1 this recipient is suppressed: manual", judge.Suppressed, 422},
		{"554 5.7.1", "relay-unavailable", 503}, // it refuses this server
		{"5", "recipient-rejected", 422},
	} {
		if strings.HasPrefix(said, one.begins) {
			return one.status, one.kind, "", 0
		}
	}
	return 500, said, "", 0
}
