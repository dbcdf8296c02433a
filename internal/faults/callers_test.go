package faults_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
)

// answerPatience is longer than any answer may take.
const answerPatience = 40 * time.Second

// A reply is what a node said to one request.
type reply struct {
	status int
	text   []byte
	// replayed says that it is the answer to an earlier request.
	replayed bool
	said     struct {
		ID       string
		Type     string
		Degraded bool
		Released bool
		Time     time.Time `json:"server_time"`
		Limit    string
		Wait     int64 `json:"wait_ms"`
		Sends    []struct{ ID string }
		Limits   []struct{ Limit, Remaining int }
	}
	err error
}

// kind is the end of a problem's type.
func (r *reply) kind() string {
	if r.err != nil {
		if op, ok := errors.AsType[*net.OpError](r.err); ok && op.Op == "dial" {
			return judge.NotAsked
		}
		return ""
	}
	return r.said.Type[strings.LastIndexAny(r.said.Type, ":#")+1:]
}

// ask sends a node one request, once.
func (s *rig) ask(n *node, method, path, body, key string) (r reply) {
	request, err := http.NewRequest(method, *n.url.Load()+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	bearer := apiKey
	if strings.HasPrefix(path, "/admin/") {
		bearer = adminKey
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Content-Type", "application/json")
	request.GetBody = nil // so that no transport repeats it
	if key != "" {
		request.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close()
	if r.text, err = io.ReadAll(response.Body); err != nil {
		return reply{err: err}
	}
	r.status, r.replayed = response.StatusCode, response.Header.Get("Idempotent-Replayed") != ""
	if bytes.HasPrefix(r.text, []byte("{")) {
		r.err = json.Unmarshal(r.text, &r.said)
	}
	return r
}
