package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// signUp is the back end behind the form. It keeps nothing: mailgate makes the codes,
// mails them and checks them.
type signUp struct{ client *Client }

// question is what the pages send, all fields of all requests.
type question struct {
	Email  string `json:"email"`
	Code   string `json:"code"`
	Locale string `json:"locale"`
	Click  string `json:"click"` // one click of a visitor, however often it arrives
}

// start has a code mailed.
func (s *signUp) start(w http.ResponseWriter, r *http.Request) {
	pass(w, r, func(ctx context.Context, q question) (Answer, error) {
		return s.client.SendCode(ctx, q.Click, q.Email, q.Locale)
	})
}

// check has checked what was typed.
func (s *signUp) check(w http.ResponseWriter, r *http.Request) {
	pass(w, r, func(ctx context.Context, q question) (Answer, error) {
		return s.client.VerifyCode(ctx, q.Email, q.Code)
	})
}

// standing tells a page that was loaded again how things are.
func (s *signUp) standing(w http.ResponseWriter, r *http.Request) {
	pass(w, r, func(ctx context.Context, q question) (Answer, error) {
		return s.client.Mailbox(ctx, q.Email)
	})
}

// reset is the operator's button.
func (s *signUp) reset(w http.ResponseWriter, r *http.Request) {
	pass(w, r, func(ctx context.Context, q question) (Answer, error) {
		return s.client.Reset(ctx, q.Email, "reset on the sign-up page")
	})
}

// pass hands mailgate's answer to the page as it is, so that the countdown can read it. A
// send goes on when the visitor leaves the page; the HTTP client's timeout bounds it.
func pass(w http.ResponseWriter, r *http.Request, ask func(context.Context, question) (Answer, error)) {
	q, ok := readQuestion(w, r)
	if !ok {
		return
	}
	answer, err := ask(context.WithoutCancel(r.Context()), q)
	if err != nil {
		fail(w, http.StatusBadGateway, "mailgate does not answer.")
		return
	}
	writeJSON(w, answer.Status, answer.Body)
}

// readQuestion reads what a page sent, as JSON only, which a form of another site cannot send.
func readQuestion(w http.ResponseWriter, r *http.Request) (q question, ok bool) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		fail(w, http.StatusUnsupportedMediaType, "Send JSON.")
		return q, false
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
	if err := decoder.Decode(&q); err != nil {
		fail(w, http.StatusBadRequest, "Invalid JSON.")
		return q, false
	}
	return q, true
}
