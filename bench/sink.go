package main

import (
	"bufio"
	"net"
	"strings"
	"sync/atomic"
)

// sink is a relay that takes every email and keeps none.
type sink struct {
	addr          string
	mails, octets atomic.Int64 // taken so far
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
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for answer := "220 sink.example ESMTP"; ; {
		_, err := out.WriteString(answer + "\r\n")
		if err == nil && in.Buffered() == 0 {
			err = out.Flush()
		}
		if err != nil || answer == "221 2.0.0 bye" {
			return
		}
		if answer == "354 go ahead" {
			if answer = "250 2.0.0 taken"; s.take(in) != nil {
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
		case "DATA":
			answer = "354 go ahead"
		case "QUIT":
			answer = "221 2.0.0 bye"
		default:
			answer = "250 2.0.0 ok"
		}
	}
}

// take reads one email up to its final dot.
func (s *sink) take(in *bufio.Reader) error {
	octets := 0
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
		octets += len(line)
	}
}
