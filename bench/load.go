package main

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// apiKey is the key that all requests show, and adminKey that of operators.
const (
	apiKey   = "bench-5f0c1d9e77aa"
	adminKey = "bench-7be20c4d91f3"
)

// load is a closed loop over kept connections: each sends a request, waits for the answer and
// sends the next.
type load struct {
	connections []*connection
	ask         func(c *connection, n int64) error // the n-th
	next        atomic.Int64
}

type connection struct {
	net.Conn
	in     *bufio.Reader
	answer fasthttp.Response
	said   string // the last reply by SMTP
}

// openLoad opens the connections until the end of the comparison.
func (b *bench) openLoad(addr string, connections int, request func(n int64) string, status int) *load {
	return b.openConnections(addr, connections, func(c *connection, n int64) error { return c.ask(request(n), status) })
}

func (b *bench) openConnections(addr string, connections int, ask func(c *connection, n int64) error) *load {
	l := &load{ask: ask}
	for range connections {
		conn := must(net.Dial("tcp", addr))
		b.later(func() { conn.Close() })
		l.connections = append(l.connections, &connection{Conn: conn, in: bufio.NewReader(conn)})
	}
	return l
}

// post returns requests with a JSON body.
func post(path string, body func(n int64) string) func(n int64) string {
	head := "POST " + path + " HTTP/1.1\r\nHost: mailgate.example\r\nAuthorization: Bearer " + apiKey +
		"\r\nContent-Type: application/json\r\nContent-Length: "
	return func(n int64) string {
		text := body(n)
		return fmt.Sprintf("%s%d\r\n\r\n%s", head, len(text), text)
	}
}

// sendCode returns requests for codes, each for the mailbox of a number.
func sendCode(number func(n int64) int64) func(n int64) string {
	return post("/send-code", func(n int64) string { return `{"email":"` + mailbox(number(n)) + `"}` })
}

// mailbox returns a mailbox of 20 characters.
func mailbox(n int64) string { return fmt.Sprintf("user%07d@mail.com", n) }

// each returns a different number for each call; among repeats the first n numbers.
func each(n int64) int64 { return n }

func among(count int64) func(n int64) int64 {
	return func(n int64) int64 { return n * 7_919 % count } // a prime: all of them, in no order
}

// run sends requests for some time, but at most so many, and returns how many were answered.
func (l *load) run(length time.Duration, most int64) int64 {
	first, deadline := l.next.Load(), time.Now().Add(length)
	errs := make([]error, len(l.connections))
	var started atomic.Int64
	var wait sync.WaitGroup
	for i, c := range l.connections {
		wait.Go(func() {
			for errs[i] == nil && time.Now().Before(deadline) && started.Add(1) <= most {
				errs[i] = l.ask(c, l.next.Add(1)-1)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		check(err)
	}
	return l.next.Load() - first
}

// send sends n requests, however long it takes.
func (l *load) send(n int64) { l.run(time.Hour, n) }

// on returns a side: a process under this load.
func (l *load) on(p *process) side {
	return func() sample {
		used, began := p.processor(), time.Now()
		answered := float64(l.run(*length, 1<<62))
		took := time.Since(began)
		return sample{
			rate:      answered / took.Seconds(),
			processor: float64((p.processor() - used).Microseconds()) / answered,
			memory:    p.memory(),
		}
	}
}

// ask sends a request and reads the answer, which must have the status.
func (c *connection) ask(request string, want int) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.Write([]byte(request)); err != nil {
		return err
	}
	if err := c.answer.Read(c.in); err != nil {
		return err
	}
	if status := c.answer.StatusCode(); status != want {
		return fmt.Errorf("status %d, want %d: %s", status, want, c.answer.Body())
	}
	return nil
}
