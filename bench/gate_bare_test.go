package main

import (
	"bufio"
	"encoding/json"
	"net"
	"slices"
	"testing"

	"github.com/valyala/fasthttp"
)

// The bare handlers answer in the fields of ours, and about as much.
func TestBareAnswersAsOursDo(t *testing.T) {
	err := withDenying(1, func(server string) error {
		want, size := problemOf(t, server)
		return withBare(func(bare map[string]string) error {
			if len(bare) != 3 {
				t.Errorf("%d bare servers, want 3", len(bare))
			}
			for name, addr := range bare {
				got, theirs := problemOf(t, addr)
				if !slices.Equal(got, want) {
					t.Errorf("%s answers in\n%v\nours in\n%v", name, got, want)
				}
				if ratio := float64(theirs) / float64(size); ratio < 0.9 || ratio > 1.1 {
					t.Errorf("%s answers %d octets, ours %d", name, theirs, size)
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// problemOf asks as the load does, and returns the answer's fields, sorted, those of
// the limits included, and its size.
func problemOf(t *testing.T, addr string) (fields []string, size int) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &caller{conn: conn, in: bufio.NewReader(conn)}
	if err := c.ask(sendCode(mailbox("user", 0)), fasthttp.StatusTooManyRequests); err != nil {
		t.Fatal(err)
	}
	var problem map[string]any
	if err := json.Unmarshal(c.answer.Body(), &problem); err != nil {
		t.Fatal(err)
	}
	for name, value := range problem {
		fields = append(fields, name)
		if name != "limits" {
			continue
		}
		for _, limit := range value.([]any) {
			for inner := range limit.(map[string]any) {
				fields = append(fields, name+"."+inner)
			}
		}
	}
	slices.Sort(fields)
	return fields, len(c.answer.Body())
}
