package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// journal keeps what every server of the tests logged, and every address, code and
// secret that went through them. None of these may be found in it.
var journal = newRecord()

type record struct {
	mu    sync.Mutex
	log   bytes.Buffer
	lines map[string][]string // by request
	seen  map[string]bool
}

func newRecord() *record { return &record{lines: map[string][]string{}, seen: map[string]bool{}} }

func (r *record) Write(line []byte) (int, error) {
	_, after, _ := strings.Cut(string(line), `"request_id":"`)
	id, _, _ := strings.Cut(after, `"`)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[id] = append(r.lines[id], string(line))
	return r.log.Write(line)
}

func (r *record) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// text is what has been logged so far.
func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// about returns the log lines of one request.
func (r *record) about(t testing.TB, requestID string) (lines []map[string]any) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines[requestID] {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("a log line is no JSON: %v", err)
		}
		lines = append(lines, fields)
	}
	return lines
}

// showsStack fails the test unless the log has a stack about the answer, with the name of the test in it.
func (got reply) showsStack(t testing.TB) {
	t.Helper()
	stack, _ := got.logged(t, fields{"stack": something})[0]["stack"].(string)
	if name, _, _ := strings.Cut(t.Name(), "/"); !strings.Contains(stack, name) {
		t.Errorf("the log has the stack %s", stack)
	}
}

// private notes something that no log may show.
func (r *record) private(texts ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range texts {
		if len(text) >= 4 {
			r.seen[text] = true
		}
	}
}

// notePrivate collects what is private in a request.
func (r *record) notePrivate(path, authorization string, body []byte) {
	r.private(strings.TrimPrefix(authorization, "Bearer "))
	var fields struct{ Email, Code, Subject string }
	if json.Unmarshal(body, &fields) == nil {
		r.private(fields.Email, fields.Code)
		if !strings.HasPrefix(path, "/admin/rules/") { // where a subject can be the name of a key
			r.private(fields.Subject)
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.Contains(part, "@") || strings.Contains(part, "%") {
			r.private(part)
		}
	}
}

var word = regexp.MustCompile(`[0-9A-Za-z_-]+`)

// leaks lists what is private and was logged: an address or a key anywhere, a code as
// a word of its own, since its digits may well be part of a number.
func (r *record) leaks() (all []string) {
	log := strings.ToLower(r.text())
	words := map[string]bool{}
	for _, w := range word.FindAllString(log, -1) {
		words[w] = true
	}
	for text := range r.seen {
		lower := strings.ToLower(text)
		code := word.FindString(lower) == lower && len(lower) <= 12
		if code && words[lower] || !code && strings.Contains(log, lower) {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// unnamed lists the lines of failed requests without the problem's name, and of successful ones with
// one. The fallback's answers have none, and hooks say errors with a 200.
func (r *record) unnamed() (all []string) {
	for line := range strings.Lines(r.text()) {
		var said struct {
			Msg, Route, Problem string
			Status              int
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "request" && said.Route != "fallback" &&
			!strings.HasPrefix(said.Route, "hook-") && (said.Status >= 400) != (said.Problem != "") {
			all = append(all, line)
		}
	}
	return all
}

// TestMain looks, after all tests, at what only the whole run can show: whether any
// log line shows something private or lacks the problem, and whether every documented answer was
// seen.
func TestMain(m *testing.M) {
	flag.Set("test.parallel", "32") // most tests wait for a timeout or an answer
	status := m.Run()
	for _, text := range journal.leaks() {
		fmt.Printf("the logs show something private: %q\n", text)
		status = 1
	}
	for _, line := range journal.unnamed() {
		fmt.Printf("the log lacks the problem, or has one of a success: %s", line)
		status = 1
	}
	if status == 0 && wholeRun() {
		for _, answer := range theContract.unseen() {
			fmt.Printf("openapi.yaml has an answer that no test provoked: %s\n", answer)
			status = 1
		}
	}
	os.Exit(status)
}

// The search finds what is planted, and nothing in what is sound.
func TestJournal_Planted_IsFound(t *testing.T) {
	const line = `{"msg":"request","request_id":"00482913aa","id":"482913-x","ms":0.482913}`
	tests := []struct {
		log   string
		leaks int
	}{
		{line, 0},
		{line + `{"to":"alice@example.com"}`, 1},
		{line + `{"to":"ALICE@example.com"}`, 1},
		{line + `{"code":"482914"}`, 1},
		{line + `sent Zq7Kx9 to them`, 1},
		{line + `Bearer a-secret-of-the-shop, alice@example.com`, 2},
	}
	for _, tt := range tests {
		r := newRecord()
		r.private("alice@example.com", "482914", "Zq7Kx9", "a-secret-of-the-shop", "xyz")
		r.Write([]byte(tt.log))
		if got := r.leaks(); len(got) != tt.leaks {
			t.Errorf("%s: found %q, want %d", tt.log, got, tt.leaks)
		}
	}
}
