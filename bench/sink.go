package main

import (
	"bufio"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// sink is a relay that takes every email and keeps none.
type sink struct {
	addr          string
	mails, octets atomic.Int64 // taken so far
	codes         *codes       // that were in them; nil keeps none
}

// codes are six digits by the address that they were mailed to.
type codes struct{ all sync.Map }

var sixDigits = regexp.MustCompile(`\b\d{6}\b`)

func newCodes() *codes { return new(codes) }

// keep looks for a code in a line of a text.
func (c *codes) keep(to string, line []byte) {
	if code := sixDigits.Find(line); c != nil && code != nil {
		c.all.Store(to, string(code))
	}
}

func (c *codes) of(to string) string {
	code, _ := c.all.Load(to)
	text, _ := code.(string)
	return text
}

// openSink opens a relay until the end of the comparison.
func (b *bench) openSink() *sink {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	b.later(func() { listener.Close() })
	s := &sink{addr: listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go s.serve(conn)
		}
	}()
	return s
}

// serve talks SMTP until the client leaves. Commands that came together are answered together.
func (s *sink) serve(conn net.Conn) {
	defer conn.Close()
	in, out, to := bufio.NewReader(conn), bufio.NewWriter(conn), ""
	for answer := "220 sink.example ESMTP"; ; {
		_, err := out.WriteString(answer + "\r\n")
		if err == nil && in.Buffered() == 0 {
			err = out.Flush()
		}
		if err != nil || answer == "221 2.0.0 bye" {
			return
		}
		if answer == "354 go ahead" {
			if answer = "250 2.0.0 taken"; s.take(in, to) != nil {
				return
			}
			continue
		}
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " "); verb {
		case "EHLO":
			answer = "250-sink.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES"
		case "RCPT":
			to, answer = between(line, "<", ">"), "250 2.0.0 ok"
		case "DATA":
			answer = "354 go ahead"
		case "QUIT":
			answer = "221 2.0.0 bye"
		default:
			answer = "250 2.0.0 ok"
		}
	}
}

func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}

// take reads one email up to its final dot.
func (s *sink) take(in *bufio.Reader, to string) error {
	octets, body := 0, false
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if string(line) == ".\r\n" {
			s.octets.Add(int64(octets))
			s.mails.Add(1)
			return nil
		}
		if body = body || string(line) == "\r\n"; body {
			s.codes.keep(to, line)
		}
		octets += len(line)
	}
}
