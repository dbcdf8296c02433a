package hooks

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mailgate/mailgate/suppression/bounce"
)

// provider is an email provider whose calls have all that their reading needs.
type provider struct {
	name     string
	statuses map[int]int // in place of 401, if the provider repeats a call after that, and of 503, if it gives up after that
	genuine  func(*Call) error
	read     func(*Call) []bounce.Event
}

func (p *provider) Name() string          { return p.name }
func (p *provider) Genuine(c *Call) error { return p.genuine(c) }

func (p *provider) Events(_ context.Context, c *Call) ([]bounce.Event, error) { return p.read(c), nil }

func (p *provider) Status(status int) int { return cmp.Or(p.statuses[status], status) }

// maxAge is how old a signature may be. Amazon SNS repeats a call for an hour, Mailgun for 8 and SendGrid for 24, with
// the first signature for all that they say.
const maxAge = bounce.MaxAge * time.Millisecond

func fresh(seconds string, now time.Time) bool {
	at, err := strconv.ParseInt(seconds, 10, 64)
	return err == nil && now.Sub(time.Unix(at, 0)).Abs() <= maxAge
}

// unmarshal reads what a provider sent, which may repeat the octets of a server that refused the email.
func unmarshal(text []byte, into any) bool {
	return json.Unmarshal(text, into, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) == nil
}

// each makes an event of each object of a body, which is one or an array of them. What is of an unknown form
// is an event of the kind Other.
func each[T any](event func(T) bounce.Event) func(*Call) []bounce.Event {
	return func(c *Call) (events []bounce.Event) {
		all := []jsontext.Value{c.Body}
		if array := []jsontext.Value(nil); unmarshal(c.Body, &array) {
			all = array
		}
		for _, one := range all {
			var read T
			e := bounce.Event{Kind: bounce.Other}
			if unmarshal(one, &read) {
				e = event(read)
			}
			e.Text = string(one)
			events = append(events, e)
		}
		return events
	}
}

// kindOf looks for the first words of an event in a table, for the most of them that are known.
func kindOf(table map[string]bounce.Kind, words ...string) bounce.Kind {
	for n := len(words); n > 0; n-- {
		if kind, known := table[strings.Join(words[:n], " ")]; known {
			return kind
		}
	}
	return bounce.Other
}

// bare returns an address without a name before it.
func bare(text string) string {
	return strings.TrimSuffix(text[strings.LastIndexByte(text, '<')+1:], ">")
}
