package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/valyala/fasthttp"
)

// apiKey is the one key of the servers that are measured.
const apiKey = "app-5f0c1d9e77aa"

// An order is one round of POST /send-code over kept connections, one request after
// the other on each.
type order struct {
	Addr        string
	Connections int
	Requests    int
	From        string // the mailboxes are mailbox(From, First) and those after it,
	First       int
	Mailboxes   int // so many, and then the same again; 0 for all different
	Status      int // what every answer must be
}

// An outcome is the answer to an order.
type outcome struct {
	Nanoseconds float64 // on the clock for each request
	Trouble     string
}

// A load is the callers over HTTP, in a process of their own. It costs both sides of a
// comparison the same.
type load struct{ *talk }

func withLoad(use func(load) error) error {
	t, err := startTalk(loadChild)
	if err != nil {
		return err
	}
	return errors.Join(use(load{t}), t.end())
}

// round carries out an order.
func (l load) round(o order) (cost, error) {
	if err := json.NewEncoder(l.to).Encode(o); err != nil {
		return cost{}, err
	}
	line, err := l.line()
	if err != nil {
		return cost{}, err
	}
	var done outcome
	if err := json.Unmarshal([]byte(line), &done); err != nil {
		return cost{}, err
	}
	if done.Trouble != "" {
		return cost{}, errors.New(done.Trouble)
	}
	return cost{wall: done.Nanoseconds}, nil
}

// beLoad carries out orders until there are no more. Connections are kept from one
// order to the next.
func beLoad(orders io.Reader, outcomes io.Writer) error {
	kept := map[string][]*caller{}
	in, out := json.NewDecoder(orders), json.NewEncoder(outcomes)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return hangUp(kept)
		} else if err != nil {
			return err
		}
		var done outcome
		all, err := dial(kept[o.Addr], o)
		kept[o.Addr] = all
		if err == nil {
			done.Nanoseconds, err = o.carryOut(all)
		}
		if err != nil {
			done.Trouble = err.Error()
		}
		if err := out.Encode(done); err != nil {
			return err
		}
	}
}

// A caller is one kept connection.
type caller struct {
	conn   net.Conn
	in     *bufio.Reader
	answer fasthttp.Response
}

// dial adds the connections that are missing.
func dial(all []*caller, o order) ([]*caller, error) {
	for len(all) < o.Connections {
		conn, err := net.Dial("tcp", o.Addr)
		if err != nil {
			return all, err
		}
		all = append(all, &caller{conn: conn, in: bufio.NewReader(conn)})
	}
	return all, nil
}

func hangUp(kept map[string][]*caller) (err error) {
	for _, all := range kept {
		for _, c := range all {
			err = errors.Join(err, c.conn.Close())
		}
	}
	return err
}

func (o order) carryOut(all []*caller) (float64, error) {
	requests := make([][]byte, o.Requests)
	for i := range requests {
		place := i
		if o.Mailboxes > 0 {
			place %= o.Mailboxes
		}
		requests[i] = sendCode(mailbox(o.From, o.First+place))
	}
	free := make(chan *caller, len(all))
	for _, c := range all {
		free <- c
	}
	return spread(len(all), o.Requests, func(i int) error {
		c := <-free
		defer func() { free <- c }()
		return c.ask(requests[i], o.Status)
	})
}

// sendCode is one whole request.
func sendCode(mailbox string) []byte {
	body := `{"email":"` + mailbox + `"}`
	return []byte(strings.Join([]string{
		"POST /send-code HTTP/1.1",
		"Host: mailgate.example",
		"User-Agent: bench",
		"Authorization: Bearer " + apiKey,
		"Content-Type: application/json",
		fmt.Sprintf("Content-Length: %d", len(body)),
		"",
		body,
	}, "\r\n"))
}

// ask sends a request, waits for the answer and insists on its status.
func (c *caller) ask(request []byte, status int) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	if err := c.answer.Read(c.in); err != nil {
		return err
	}
	if got := c.answer.StatusCode(); got != status {
		return fmt.Errorf("status %d, want %d: %s", got, status, c.answer.Body())
	}
	return nil
}
