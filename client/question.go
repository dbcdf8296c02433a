package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
)

// A question is one request, as often as it is made.
type question struct {
	doing        string // for errors
	method, path string
	named        argument // what stands in the path for {}, if anything
	body         any      // sent as JSON; nil for none
	key          string   // the Idempotency-Key; empty for none
	mail         bool     // an end in doubt is an Unsettled
	harmless     bool     // doing it twice does no more than doing it once
	counts       bool     // a history that failed may have counted it all the same
}

// An argument is a text that stands in a path.
type argument struct{ name, text string }

// ErrArgument is the kind of an action or an address that no path can have: it is empty, "."
// or "..", and another question would be asked. Nothing is asked then.
var ErrArgument = errors.New("it is empty, or consists of dots")

func (a argument) check() error {
	if a.name != "" && (a.text == "" || a.text == "." || a.text == "..") {
		return fmt.Errorf("the %s will not do: %w", a.name, ErrArgument)
	}
	return nil
}

// ErrAnswer is the kind of a yes that cannot be read: it is not mailgate who answers, or
// a mailgate that this client does not know. What was asked for may have been done.
var ErrAnswer = errors.New("the answer cannot be read")

// A yes is an answer to be read. It is whole if nothing is missing that a caller relies on.
type yes interface{ whole() bool }

// ask makes the request until there is an answer, and reads a yes into what is given.
func (c *Client) ask(ctx context.Context, q question, into yes) (http.Header, error) {
	if err := q.named.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", q.doing, err)
	}
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return nil, fmt.Errorf("%s: %w", q.doing, err) // nothing has what JSON cannot write
		}
	}
	got, doubt, err := c.insist(ctx, q, body)
	if err == nil && (json.Unmarshal(got.body, into) != nil || !into.whole()) {
		doubt, err = true, ErrAnswer // what was wrong might quote the answer
	}
	if doubt && err != nil {
		err = q.ended(err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.doing, err)
	}
	return got.header, nil
}

// insist asks again as long as that makes sense. There is doubt if an attempt, the last or
// an earlier one, may have done what was asked for.
func (c *Client) insist(ctx context.Context, q question, body []byte) (got reply, doubt bool, err error) {
	for attempt := 1; ; attempt++ {
		got, err = c.once(ctx, q, body)
		doubt = doubt || q.inDoubt(err)
		if err == nil || attempt >= c.with.Attempts {
			return got, doubt, err
		}
		if over := ctx.Err(); over != nil {
			if errors.Is(err, over) {
				return got, doubt, err
			}
			return got, doubt, &interrupted{over, err} // the answer came as the context ended
		}
		notBefore, again := q.again(err)
		if !again || notBefore > c.with.MaxPause {
			return got, doubt, err
		}
		if over := c.with.Pause(ctx, c.pauseAfter(attempt, notBefore)); over != nil {
			return got, doubt, &interrupted{over, err}
		}
	}
}

// A reply is what came back: the whole of it, within bounds.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// maxReply is far more than mailgate ever says.
const maxReply = 1 << 20

// once asks one time. All but a 200 is an error.
func (c *Client) once(ctx context.Context, q question, body []byte) (reply, error) {
	within, cancel := context.WithTimeout(ctx, c.with.Timeout)
	defer cancel()
	var written atomic.Bool
	request, err := c.request(tellWritten(within, &written), q, body)
	if err != nil {
		return reply{}, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return reply{}, noAnswer(ctx, err, written.Load())
	}
	defer response.Body.Close()
	got := reply{status: response.StatusCode, header: response.Header}
	got.body, err = io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if len(got.body) > maxReply {
		return reply{}, ErrAnswer
	}
	if err != nil {
		return reply{}, noAnswer(ctx, err, true)
	}
	if got.status != http.StatusOK {
		return reply{}, got.refusal()
	}
	return got, nil
}

// tellWritten has it told when a request goes out. On a kept connection that breaks net/http
// asks once more, on a new one, and its error is then of the second time alone.
func tellWritten(ctx context.Context, written *atomic.Bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }})
}

func (c *Client) request(ctx context.Context, q question, body []byte) (*http.Request, error) {
	path := strings.Replace(q.path, "{}", url.PathEscape(q.named.text), 1)
	request, err := http.NewRequestWithContext(ctx, q.method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, errBase // the cause would quote the path, and the address in it
	}
	request.Header.Set("Accept", "application/json, application/problem+json")
	request.Header.Set("User-Agent", "mailgate-go")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		request.Header.Set("Idempotency-Key", quoteKey(q.key))
	}
	return request, nil
}
