package demo_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cmd/mailgate/demo"
)

// An answer that was given again tells of an earlier moment, and the page has to know.
func TestAnAnswerGivenAgain(t *testing.T) {
	for _, again := range []string{"", "true"} {
		client, _ := against(t, func(w http.ResponseWriter, r *http.Request) {
			if again != "" {
				w.Header().Set("Idempotent-Replayed", again)
			}
			io.WriteString(w, `{"status":"sent","wait_ms":60000}`)
		})
		answer, err := client.SendCode(context.Background(), "a-click", "alice@example.com", "")
		if err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%+v, %v", answer, err)
		}
		page := string(answer.Body)
		if strings.Contains(page, `"replayed":true`) != (again != "") || !strings.Contains(page, `"wait_ms":60000`) {
			t.Errorf("given again %q: the page gets %s", again, page)
		}
	}
}

// What cannot be read is told as it is, and a send is asked for once more under its click.
func TestAnAnswerThatCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"a page of somebody else's": {func(w http.ResponseWriter) { io.WriteString(w, "<h1>Bad gateway</h1>") }, "not JSON"},
		"one that breaks off": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"status":`)
		}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			client, keys := against(t, func(w http.ResponseWriter, r *http.Request) { tt.answer(w) })
			_, err := client.SendCode(context.Background(), "a-click", "alice@example.com", "")
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "%!") {
				t.Errorf("the error is %v", err)
			}
			if got := fmt.Sprint(*keys); got != "[a-click a-click]" {
				t.Errorf("asked under %s", got)
			}
		})
	}
}

// against is a client of a mailgate that answers so, and the keys of the requests.
func against(t *testing.T, answer http.HandlerFunc) (client *demo.Client, keys *[]string) {
	t.Helper()
	keys = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*keys = append(*keys, r.Header.Get("Idempotency-Key"))
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return &demo.Client{URL: server.URL, APIKey: "key", HTTP: server.Client()}, keys
}
