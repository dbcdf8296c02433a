package demo

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
)

const (
	codeLife   = 10 * 60 * 1000 // milliseconds
	maxGuesses = 5
	maxPending = 1000 // codes that wait to be typed
)

// signUp is the back end behind the form. What it keeps of a visitor is the code that
// was last mailed, until it is typed or too old.
type signUp struct {
	client *Client
	now    func() int64

	mu      sync.Mutex
	pending map[string]pending
}

type pending struct {
	code    string
	expires int64
	guesses int
}

// question is what the pages send, all fields of all requests.
type question struct {
	Email  string `json:"email"`
	Code   string `json:"code"`
	Locale string `json:"locale"`
}

// start makes a code and has it mailed. Mailgate's answer goes to the page as it is.
func (s *signUp) start(w http.ResponseWriter, r *http.Request) {
	q, ok := readQuestion(w, r)
	if !ok {
		return
	}
	code, err := newCode()
	if err != nil {
		fail(w, http.StatusInternalServerError, "no code could be made")
		return
	}
	answer, err := s.client.SendCode(lasting(r), q.Email, code, q.Locale)
	if err != nil {
		fail(w, http.StatusBadGateway, "mailgate does not answer")
		return
	}
	// A 504 means that nobody knows whether the mail went out: its code must work.
	if answer.Status == http.StatusOK || answer.Status == http.StatusGatewayTimeout {
		s.remember(q.Email, code)
	}
	pass(w, answer)
}

// check compares what was typed with what was mailed.
func (s *signUp) check(w http.ResponseWriter, r *http.Request) {
	q, ok := readQuestion(w, r)
	if !ok {
		return
	}
	verified, left := s.spend(q.Email, q.Code)
	writeJSON(w, http.StatusOK, struct {
		Verified bool `json:"verified"`
		Left     int  `json:"attempts_left"`
	}{verified, left})
}

// standing tells a page that was loaded again how long to go on counting.
func (s *signUp) standing(w http.ResponseWriter, r *http.Request) {
	q, ok := readQuestion(w, r)
	if !ok {
		return
	}
	answer, err := s.client.Mailbox(lasting(r), q.Email)
	if err != nil {
		fail(w, http.StatusBadGateway, "mailgate does not answer")
		return
	}
	pass(w, answer)
}

// reset is the operator's button.
func (s *signUp) reset(w http.ResponseWriter, r *http.Request) {
	q, ok := readQuestion(w, r)
	if !ok {
		return
	}
	answer, err := s.client.Reset(lasting(r), q.Email, "asked for on the demo page")
	if err != nil {
		fail(w, http.StatusBadGateway, "mailgate does not answer")
		return
	}
	pass(w, answer)
}

// lasting is the request's context without its end: a code that was mailed must work
// also when the visitor left the page before the answer. The HTTP client's timeout
// bounds it.
func lasting(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }

func (s *signUp) remember(email, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for key, p := range s.pending {
		if p.expires <= now || len(s.pending) >= maxPending {
			delete(s.pending, key)
		}
	}
	s.pending[visitor(email)] = pending{code, now + codeLife, maxGuesses}
}

// spend takes one guess. A right one uses the code up.
func (s *signUp) spend(email, code string) (right bool, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := visitor(email)
	p, ok := s.pending[key]
	if !ok || p.expires <= s.now() || p.guesses == 0 {
		return false, 0
	}
	if subtle.ConstantTimeCompare([]byte(p.code), []byte(strings.TrimSpace(code))) == 1 {
		delete(s.pending, key)
		return true, 0
	}
	p.guesses--
	s.pending[key] = p
	return false, p.guesses
}

// visitor is what this back end knows an address by.
func visitor(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

func newCode() (string, error) {
	number, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%06d", number), nil
}

// readQuestion reads what a page sent, as JSON alone: no form of another site can.
func readQuestion(w http.ResponseWriter, r *http.Request) (q question, ok bool) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		fail(w, http.StatusUnsupportedMediaType, "JSON is expected")
		return q, false
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
	if err := decoder.Decode(&q); err != nil {
		fail(w, http.StatusBadRequest, "that is not the JSON expected")
		return q, false
	}
	return q, true
}
