package api_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/prometheus/client_golang/prometheus"
)

// An answer outlives the template of its mail. What was never done under a template that is
// not there leaves the key to be used.
func TestOnceWithoutItsTemplate(t *testing.T) {
	r := newRig(t, setup{})
	const old, mended = `{"email":"gone@example.com","template":"invite"}`, `{"email":"new@example.com"}`
	r.server.Reload(api.Live{Composer: composerWith(t, invitation)})
	first := r.onceAs(appKey, "k", old)
	first.is(t, 200, "")
	r.server.Reload(api.Live{Composer: newComposer(t)})
	r.onceAs(appKey, "k", old).again(t, first)
	r.server.Reload(api.Live{Composer: composerWith(t, needy)})
	r.onceAs(appKey, "k", old).again(t, first)
	r.server.Reload(api.Live{Composer: newComposer(t)})
	r.onceAs(appKey, "k", old+" ").is(t, 422, "invalid")
	for range 2 {
		r.onceAs(appKey, "another", old).is(t, 422, "invalid")
	}
	r.onceAs(appKey, "another", mended).is(t, 200, "")
	if len(r.box.List()) != 2 {
		t.Errorf("%d mails", len(r.box.List()))
	}
}

// A mail that may have left before its template was gone is not refused as if it had not:
// nobody knows, and that stays the answer.
func TestOnceHandedOverWithoutItsTemplate(t *testing.T) {
	const old = `{"email":"gone@example.com","template":"invite","client_ip":"203.0.113.7"}`
	r := newRig(t, setup{})
	dying := r.unanswering()
	dying.server.Reload(api.Live{Composer: composerWith(t, invitation)})
	id := dying.onceAs(appKey, "k", old).body["id"]
	r.now.Add(lease)
	unknown := r.onceAs(appKey, "k", old)
	unknown.is(t, 504, "delivery-unknown")
	if unknown.body["id"] != id || unknown.body["wait_ms"] != 30_000.0 {
		t.Errorf("the mail %v is answered as %s", id, unknown.text)
	}
	r.onceAs(appKey, "k", old).again(t, unknown)
	if len(r.box.List()) != 1 || r.used("gone@example.com") != 1 {
		t.Errorf("%d mails, %d charged", len(r.box.List()), r.used("gone@example.com"))
	}
}

// As long as nobody can say that a request was never done, that it will not do any more is
// not the answer to it.
func TestOnceWithoutItsTemplateNorAnybody(t *testing.T) {
	const old = `{"email":"gone@example.com","template":"invite"}`
	for name, tt := range map[string]struct {
		keys    func(r *rig) *broken
		status  int
		problem string
		counted string
	}{
		"the records cannot be read": {func(r *rig) *broken {
			keys := r.newKeys(r.store)
			keys.closed.Store(true)
			return keys
		}, 503, "store-unavailable", "store-unavailable"},
		"the others cannot be asked": {func(r *rig) *broken {
			keys := r.newKeys(r.store)
			keys.alone = true
			return keys
		}, 503, "store-unavailable", "store-unavailable"},
		"the first is in progress": {func(r *rig) *broken {
			begin := r.unanswering()
			begin.server.Reload(api.Live{Composer: composerWith(t, invitation)})
			begin.onceAs(appKey, "k", old).is(t, 200, "")
			return r.keys
		}, 409, "idempotency-in-flight", "in-flight"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{})
			asked := r.anotherAs(func(o *api.Options) {
				o.Requests = r.newRequests(tt.keys(r))
				o.Metrics = prometheus.NewRegistry()
			})
			for range 2 {
				asked.onceAs(appKey, "k", old).is(t, tt.status, tt.problem)
			}
			asked.onceAs(appKey, "k", "{").is(t, 400, "bad-request") // which never did
			want := `mailgate_sends_total{limit="",outcome="` + tt.counted + `",rule=""} 2` + "\n"
			if text := asked.do("GET", "/metrics", "", "").text; !strings.Contains(text, want) {
				t.Errorf("/metrics lacks %s", want)
			}
		})
	}
}

// invitation is a template that other composers do not have.
var invitation = fstest.MapFS{
	"invite/en/subject.txt": {Data: []byte("Come")}, "invite/en/text.txt": {Data: []byte("{{.Code}}")},
	"invite/en/body.html": {Data: []byte("<p>{{.Code}}</p>")},
}

// needy is the same, with something that a request has to bring.
var needy = fstest.MapFS{
	"invite/en/subject.txt": {Data: []byte("Come")}, "invite/en/text.txt": {Data: []byte("{{.Code}} {{.Data.name}}")},
	"invite/en/body.html": {Data: []byte("<p>{{.Code}}</p>")},
}

func composerWith(t *testing.T, own fs.FS) *message.Composer {
	t.Helper()
	from := must(message.ParseSender("Acme <no-reply@acme.example>"))(t)
	return must(message.NewComposer(from, must(message.LoadTemplates(own, "en"))(t)))(t)
}
