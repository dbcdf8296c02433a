package events

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/internal/webhook"
	"github.com/mailgate/mailgate/mailer/address"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// call is what a receiver got.
type call struct {
	ID, Type, Mailbox, Email string
	Wait                     int64
}

// receiver verifies each call with the library of Standard Webhooks.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call // those that it took
}

// startReceiver answers with a status, 0 for 204. A call that is not 2xx is not taken.
func startReceiver(t testing.TB, status func(call) int) *receiver {
	r := &receiver{}
	verifier := must.Get(webhooks.NewWebhook(testSecret))(t)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = verifier.Verify(body, request.Header)
		}
		var read struct {
			Type      string
			Timestamp time.Time
			Data      struct {
				Email, Mailbox string
				Wait           int64 `json:"wait_ms"`
			}
		}
		if err == nil {
			err = json.Unmarshal(body, &read)
		}
		if err != nil {
			t.Errorf("a call: %v: %s", err, body)
		}
		c := call{request.Header.Get("webhook-id"), read.Type, read.Data.Mailbox, read.Data.Email, read.Data.Wait}
		if request.URL.Path != "/" {
			t.Errorf("a redirect was followed to %s", request.URL.Path)
		}
		w.Header().Set("Location", "/elsewhere")
		code := cmp.Or(status(c), 204)
		if code/100 == 2 {
			r.mu.Lock()
			r.calls = append(r.calls, c)
			r.mu.Unlock()
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) taken() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

type rig struct {
	*Events
	dir      string
	registry *prometheus.Registry
}

func open(t testing.TB, url, dir string, most int64) rig {
	t.Helper()
	r := rig{dir: dir, registry: prometheus.NewRegistry()}
	r.Events = must.Get(Open(Options{
		URL: url, Secrets: must.Get(webhook.ParseSecrets("whsec_b3RoZXIgc2VjcmV0IG9mIDI0IGJ5dGVz | " + testSecret))(t), Dir: dir, MaxBytes: most,
		Now: func() int64 { return time.Now().UnixMilli() }, Log: slog.New(slog.DiscardHandler), Metrics: r.registry,
	}))(t)
	t.Cleanup(r.end)
	return r
}

func (r rig) end() { r.Events.end(); <-r.ended }

// result returns the count of a result.
func (r rig) result(name string) int {
	var m dto.Metric
	_ = r.counts.WithLabelValues(name).Write(&m) // never fails
	return int(m.GetCounter().GetValue())
}

func (r rig) note(t testing.TB, email, kind string, wait int) {
	t.Helper()
	identity := address.Identity{}.WithLogKey([32]byte{1})
	to := must.Get(address.Parse(email, identity))(t)
	r.Note(time.Now().UnixMilli(), kind, to, fmt.Appendf(nil, `,"mailbox":%q,"wait_ms":%d`, to.Hash(), wait))
}

// Where the receiver fails some events, those about one mailbox come in order, once each, and do not hold up
// the others.
func TestEvents_SomeFail_InOrderForAMailbox(t *testing.T) {
	t.Parallel()
	const mailboxes, each = 40, 10
	fails := sync.Map{} // how often an event of a mailbox was refused
	receiver := startReceiver(t, func(c call) int {
		n, _ := fails.LoadOrStore(c.ID, new(int))
		if times := n.(*int); strings.HasPrefix(c.Email, "slow") && c.Wait == 3 && *times < 2 {
			*times++ // one call at a time is about a mailbox
			return []int{500, 410}[*times-1]
		}
		return 0
	})
	r := open(t, receiver.URL, t.TempDir(), MaxBytes)
	for i := range each {
		for m := range mailboxes {
			name := "fast"
			if m%10 == 0 {
				name = "slow"
			}
			r.note(t, fmt.Sprintf("%s%d@example.com", name, m), "email.sent", i)
		}
	}
	servertest.Eventually(t, "all events", func() bool { return r.result(delivered) == mailboxes*each })
	next, ids, fast := map[string]int64{}, map[string]bool{}, 0
	for i, c := range receiver.taken() {
		if c.Wait != next[c.Mailbox] || ids[c.ID] {
			t.Fatalf("call %d is %+v, want %d of its mailbox", i, c, next[c.Mailbox])
		}
		next[c.Mailbox]++
		if ids[c.ID] = true; strings.HasPrefix(c.Email, "fast") {
			fast = i
		}
	}
	if len(ids) != mailboxes*each || fast >= mailboxes*each-4*(each-3) || r.result(failed) != 8 {
		t.Errorf("%d events, the last of the others is number %d, %d failed", len(ids), fast, r.result(failed))
	}
	must.OK(t, r.Close())
	if _, left := openAlone(t, r.dir, MaxBytes); len(left) != 0 {
		t.Errorf("%d events are left in a journal in which nothing waits", len(left))
	}
}

// Posts that fail at the same time are one failure: after a short restart of the receiver events go on within seconds.
func TestEvents_ReceiverAwayForAMoment_GoOnSoon(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	together := make(chan struct{})
	receiver := startReceiver(t, func(call) int {
		n := calls.Add(1)
		if n == lanes {
			close(together)
		}
		if n <= lanes {
			<-together
		}
		if n <= 2*lanes {
			return 503
		}
		return 0
	})
	r := open(t, receiver.URL, t.TempDir(), MaxBytes)
	for i := range 100 {
		r.note(t, fmt.Sprintf("m%d@example.com", i), "email.sent", i)
	}
	servertest.Await(t, "all events", 20*time.Second, func() error {
		if n := r.result(delivered); n < 100 {
			return fmt.Errorf("%d are delivered, %d tries have failed", n, r.result(failed))
		}
		return nil
	})
}

// While the receiver hangs, events are noted without a wait until the journal is full, refused sends until half of it
// is. The others are dropped and counted. After a restart all that waited come in order, with the ids that they had.
func TestEvents_ReceiverHangs_JournalFills(t *testing.T) {
	t.Parallel()
	hang, first := make(chan struct{}), sync.Map{}
	receiver := startReceiver(t, func(c call) int {
		first.Store(c.ID, true)
		<-hang
		return 500
	})
	dir := t.TempDir()
	r := open(t, receiver.URL, dir, 256<<10)
	const noted = 2000
	refused := 0
	for i := range noted {
		kind := "email.refused"
		if i >= noted/2 {
			kind = "email.sent"
		}
		r.note(t, fmt.Sprintf("m%d@example.com", i%50), kind, i)
		if i == noted/2-1 || i == noted-1 { // fewer than wait for the journal at most
			servertest.Eventually(t, "the hand-over", func() bool { return len(r.notes) == 0 })
		}
		if i == noted/2-1 {
			servertest.Eventually(t, "a full half", func() bool { return r.result(droppedFull) > 0 })
			refused = r.result(droppedFull)
		}
	}
	must.OK(t, r.Close()) // which cuts the posts off; after an answer it could begin others
	j, _ := openAlone(t, dir, 256<<10)
	waiting := noted - r.result(droppedFull)
	if j.size > 256<<10 || j.size < 250<<10 || refused < noted/8 || r.result(droppedFull) < refused+noted/8 || waiting < noted/8 {
		t.Errorf("%d bytes hold %d events; %d of the first half were dropped, %d of all", j.size, waiting, refused, r.result(droppedFull))
	}
	t.Logf("%d bytes for each event", j.size/int64(waiting))
	must.OK(t, j.store.Close())
	close(hang)
	again := startReceiver(t, func(call) int { return 0 })
	r = open(t, again.URL, dir, 256<<10)
	servertest.Eventually(t, "what waited", func() bool { return r.result(delivered) == waiting })
	next, known := map[string]int64{}, 0
	for _, c := range again.taken() {
		if c.Wait < next[c.Mailbox] {
			t.Fatalf("%+v comes after %d of its mailbox", c, next[c.Mailbox])
		}
		next[c.Mailbox] = c.Wait
		if _, ok := first.Load(c.ID); ok {
			known++
		}
	}
	if known != lanes {
		t.Errorf("%d of the ids were there before, want %d", known, lanes)
	}
}

// openAlone opens a journal that no sender has.
func openAlone(t *testing.T, dir string, most int64) (*journal, []event) {
	t.Helper()
	j, waiting, err := openJournal(Options{Dir: dir, MaxBytes: most})
	must.OK(t, err)
	t.Cleanup(func() { _ = j.store.Close() }) // it may be closed
	return j, waiting
}

// Events that the receiver never takes hold their own size of the journal, however far apart they are.
func TestJournal_StuckEventsFarApart_HoldLittle(t *testing.T) {
	t.Parallel()
	j, _ := openAlone(t, t.TempDir(), MaxBytes)
	at := time.Now().UnixMilli()
	small, large := note{at: at, line: []byte("evt_X 1 m {}\n")}, note{at: at, line: fmt.Appendf(nil, "evt_X 1 m %s\n", strings.Repeat("x", 32<<10))}
	for range 100 {
		must.Get(j.add(t.Context(), small, 1))(t)
		for range 32 {
			must.OK(t, j.remove(must.Get(j.add(t.Context(), large, 1))(t)))
		}
	}
	if want := int64(100 * len(small.line)); j.size != want {
		t.Errorf("100 events of %d bytes hold %d", want/100, j.size)
	}
}

// A directory that is moved for a moment loses nothing.
func TestEvents_DirectoryMoved_TriedAgain(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	var calls atomic.Int64
	receiver := startReceiver(t, func(call) int {
		if calls.Add(1); up.Load() {
			return 0
		}
		return 500
	})
	r := open(t, receiver.URL, filepath.Join(t.TempDir(), "events"), MaxBytes)
	r.note(t, "alice@example.com", "email.sent", 0)
	servertest.Eventually(t, "a failure", func() bool { return r.result(failed) > 0 })
	must.OK(t, os.Rename(r.dir, r.dir+".away"))
	servertest.Eventually(t, "a failure without a call", func() bool { return int64(r.result(failed)+r.result(droppedDisk)) > calls.Load() })
	up.Store(true)
	must.OK(t, os.Rename(r.dir+".away", r.dir))
	servertest.Eventually(t, "the event", func() bool { return r.result(delivered)+r.result(droppedDisk) == 1 })
	if n := r.result(droppedDisk); n > 0 {
		t.Errorf("%d are lost", n)
	}
}

// An event that no receiver has taken for a day is dropped, and what has been handed over is not sent again.
func TestEvents_Restart_OnlyWhatWaits(t *testing.T) {
	t.Parallel()
	receiver := startReceiver(t, func(c call) int {
		if c.Wait == 1 {
			return 307
		}
		return 0
	})
	dir := t.TempDir()
	r := open(t, receiver.URL, dir, MaxBytes)
	for i := range 20 {
		r.note(t, fmt.Sprintf("m%d@example.com", i), "email.sent", i)
	}
	servertest.Eventually(t, "the others", func() bool { return r.result(delivered) == 19 && r.result(failed) > 0 })
	r.note(t, "late@example.com", "email.sent", 1)
	servertest.Eventually(t, "the late one", func() bool { return len(r.notes) == 0 })
	must.OK(t, r.Close())

	j, waiting := openAlone(t, dir, MaxBytes)
	late := waiting[len(waiting)-1].key
	must.OK(t, j.table.Update(t.Context(), late, func(line []byte, now int64) ([]byte, int64) {
		parts := strings.SplitN(string(line), " ", 3)
		return fmt.Append(nil, parts[0], " ", now-lifetime.Milliseconds()-1000, " ", parts[2]), now + 10_000_000
	}))
	must.OK(t, j.store.Close())
	again := startReceiver(t, func(call) int { return 0 })
	r = open(t, again.URL, dir, MaxBytes)
	servertest.Eventually(t, "the one that failed", func() bool { return r.result(delivered) == 1 && r.result(droppedLate) == 1 })
	if got := again.taken(); len(got) != 1 || got[0].Email != "m1@example.com" {
		t.Errorf("it got %+v", got)
	}
	if _, err := Open(Options{Dir: dir, MaxBytes: MaxBytes, Metrics: prometheus.NewRegistry()}); !errors.Is(err, cache.ErrInUse) {
		t.Errorf("a second process opens the journal: %v", err)
	}
}

func BenchmarkNote(b *testing.B) {
	receiver := startReceiver(b, func(call) int { return 0 })
	r := open(b, receiver.URL, b.TempDir(), MaxBytes)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.note(b, "alice@example.com", "email.sent", i)
	}
}
