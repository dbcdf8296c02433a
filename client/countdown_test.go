package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/client"
)

// What a page is given says the same as mailgate's answer did, letter by letter, in all
// that the countdown reads.
func TestForCountdown(t *testing.T) {
	server := play(t, line{status: 200, body: sentBody})
	gate, _ := asking(t, server.URL, client.Options{})
	sent, err := gate.SendCode(t.Context(), client.Send{Email: email})
	if err != nil {
		t.Fatal(err)
	}
	first, page := fields(t, sentBody), fields(t, string(sent.ForCountdown()))
	for _, name := range []string{"limit", "wait_ms", "retry_at", "countdown"} {
		if page[name] == nil || page[name] != first[name] {
			t.Errorf("%s is %v, and was %v", name, page[name], first[name])
		}
	}
	told, was := page["limits"].([]any)[0].(map[string]any), first["limits"].([]any)[0].(map[string]any)
	delete(was, "remaining") // how many more is not the page's
	if !reflect.DeepEqual(told, was) {
		t.Errorf("limits are %v, and were %v", told, was)
	}
	if len(page) != 5 {
		t.Errorf("a page is told more than it needs: %v", page)
	}
	if nothing := fields(t, string(client.Standing{}.ForCountdown())); nothing["wait_ms"] != 0.0 || nothing["countdown"] != nil || nothing["replayed"] != nil {
		t.Errorf("of a standing without a wait: %v", nothing)
	}
}

// An answer that was given again tells of an earlier moment, and the page asks how long it
// is now.
func TestForCountdownGivenAgain(t *testing.T) {
	server := play(t, line{status: 200, body: sentBody, header: map[string]string{"Idempotent-Replayed": "true"}})
	gate, _ := asking(t, server.URL, client.Options{})
	sent, err := gate.SendCode(t.Context(), client.Send{Email: email})
	if err != nil {
		t.Fatal(err)
	}
	if page := fields(t, string(sent.ForCountdown())); page["replayed"] != true || page["wait_ms"] == nil || len(page) != 6 {
		t.Errorf("the page is told %v", page)
	}
}

// So do the refusals that are charged, which are given again as well.
func TestForCountdownOfARefusal(t *testing.T) {
	again := map[string]string{"Idempotent-Replayed": "true"}
	of := func(l line) *client.Problem {
		t.Helper()
		gate, _ := asking(t, play(t, l).URL, client.Options{})
		_, err := gate.SendCode(t.Context(), client.Send{Email: email})
		p, ok := errors.AsType[*client.Problem](err)
		if !ok {
			t.Fatalf("the answer is %v", err)
		}
		return p
	}
	for kind, status := range map[string]int{"recipient-rejected": 422, "delivery-unknown": 504} {
		body := `{"type":"urn:mailgate:problem:` + kind + `","rule":"mailbox","countdown":"t0k3n",` + standing + `}`
		first, second := of(line{status: status, body: body}), of(line{status: status, body: body, header: again})
		if page := fields(t, string(first.ForCountdown())); first.Replayed || page["wait_ms"] != 54321.0 || page["countdown"] != "t0k3n" || len(page) != 5 {
			t.Errorf("%s: the page is told %v", kind, page)
		}
		if page := fields(t, string(second.ForCountdown())); !second.Replayed || page["replayed"] != true || page["wait_ms"] != 54321.0 || len(page) != 6 {
			t.Errorf("%s, given again: the page is told %v", kind, page)
		}
	}
	if page := of(problem(401, "unauthorized")).ForCountdown(); string(page) != "null" {
		t.Errorf("where nothing was charged the page is told %s", page)
	}
}

func fields(t *testing.T, text string) (all map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// The page behind this passes each answer that is JSON to the element's update method.
func ExampleStanding_ForCountdown() {
	mailgate := openGate(nil)
	defer mailgate.Close()
	gate, _ := client.New(mailgate.URL, "Hush-7f3b-9d21-c460", client.Options{})

	sendCode := func(w http.ResponseWriter, r *http.Request) {
		sent, err := gate.SendCode(r.Context(), client.Send{Email: r.FormValue("email")})
		page := sent.ForCountdown()
		var wait *client.Wait
		if errors.As(err, &wait) {
			page, err = wait.ForCountdown(), nil
		}
		if err != nil {
			http.Error(w, "We cannot mail you now.", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(page)
	}
	page := httptest.NewRecorder()
	sendCode(page, httptest.NewRequest("POST", "/send?email=alice@example.com", nil))
	fmt.Println(strings.HasPrefix(page.Body.String(), `{"limit":"minute","wait_ms":60000,"retry_at":"`))
	// Output:
	// true
}
