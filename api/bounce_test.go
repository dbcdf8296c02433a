package api_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/suppression/bounce"
)

const postmarkUser = "mailgate:0123456789abcdef"

type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed }

// bouncesOn has the hooks of some providers on, and the fields of Postmark in emails.
func bouncesOn(t testing.TB) func(*apitest.Options) {
	return func(o *apitest.Options) {
		o.Hooks = append(o.Hooks, must.Get(hooks.NewPostmark(postmarkUser))(t), must.Get(hooks.NewMailgun("key-0123456789abcdef"))(t),
			must.Get(hooks.NewBrevo("brevo-0123456789abcdef"))(t), must.Get(hooks.NewSESOver(noNetwork{}, "arn:aws:sns:eu-west-1:123456789012:bounces"))(t))
		o.Proofs = must.Get(proof.New([]string{"postmark"}, o.Secret))(t)
		records := must.Get(cache.Open(cache.Options{Now: o.Now}))(t).Table("bounces")
		o.Bounces = &bounce.Receiver{Suppressions: o.Suppressions, Proofs: o.Proofs, Records: keyed.Local(records), Now: o.Now}
	}
}

func (r *rig) postmark(kind, email, metadata string) reply {
	r.t.Helper()
	body := fmt.Sprintf(`{"RecordType":"Bounce","Type":%q,"Email":%q,"Metadata":{"mailgate":%q}}`, kind, email, metadata)
	return r.report("postmark", "Basic "+base64.StdEncoding.EncodeToString([]byte(postmarkUser)), body)
}

func (r *rig) report(provider, authorization, body string) reply {
	r.t.Helper()
	return r.request("POST", "/hooks/"+provider, http.Header{"Authorization": {authorization}, "Content-Type": {"application/json"}}, body)
}

// A bounce of an email that was sent suppresses its address, once; its proof is in Message-ID and in the field.
func TestBounce_OfASentEmail_Suppresses(t *testing.T) {
	r := newRig(t, setup{options: bouncesOn(t)})
	sent := r.send("Alice+x@example.com")
	mail := r.arrived("Alice+x@example.com")
	field := mail.Header.Get("X-PM-Metadata-mailgate")
	if id := sent.body["message_id"]; field == "" || id != "<"+field+"@acme.example>" {
		t.Errorf("the field is %q, the Message-ID %v", field, id)
	}
	r.postmark("Transient", "alice+x@example.com", field).is(t, 200, "")
	r.postmark("HardBounce", "bob@example.com", field).is(t, 200, "")
	r.postmark("HardBounce", "alice@example.com", field).is(t, 200, "")
	r.do("GET", "/admin/suppressions", opsKey, "").reads(t, `{"suppressions":[]}`)
	got := r.postmark("HardBounce", "alice+x@example.com", field)
	got.is(t, 200, "")
	got.logged(t, fields{"msg": "recipient suppressed", "key": "postmark", "reason": "hard-bounce", "source": "postmark", "mailbox": something}, fields{})
	r.now.Add(60_000)
	r.send("alice+x@example.com").says(t, fields{"reason": "hard-bounce", "until": "2026-12-20T12:00:00.000Z"})
	r.do("DELETE", "/admin/suppressions/alice+x@example.com", opsKey, "").is(t, 204, "")
	r.postmark("HardBounce", "alice+x@example.com", field).is(t, 200, "")
	r.send("alice+x@example.com").is(t, 200, "")
	if kept := r.kept("email=alice%2Bx@example.com&outcome=bounced", "door", "reason", "cause"); strings.Join(kept, ",") != "bounced postmark hard repeated,bounced postmark hard applied,bounced postmark hard unproven,bounced postmark soft counted" {
		t.Errorf("operators see %q", kept)
	}
	r.do("GET", "/metrics", "", "").contains(t, `mailgate_bounces_total{kind="hard",outcome="applied",provider="postmark"} 1`,
		`mailgate_bounces_total{kind="hard",outcome="repeated",provider="postmark"} 1`, `mailgate_bounces_total{kind="hard",outcome="unproven",provider="postmark"} 2`,
		`mailgate_bounces_total{kind="soft",outcome="counted",provider="postmark"} 1`, `mailgate_bounces_total{kind="complaint",outcome="applied",provider="brevo"} 0`)
}

// What is not genuine gets the status that ends retries. What is not known is 200, or a provider would give the hook up.
func TestBounce_BadInput_EachItsStatus(t *testing.T) {
	r := newRig(t, setup{options: bouncesOn(t)})
	r.report("postmark", "Basic eDp5", "{}").is(t, 403, "")
	r.report("mailgun", "", `{"signature":{"timestamp":"1","token":"2","signature":"33"}}`).is(t, 406, "")
	r.report("brevo", "Bearer x", "{}").is(t, 401, "")
	r.report("brevo", "Bearer "+appKey, "{}").is(t, 401, "")
	r.report("ses", "", `{"Type":"Notification","TopicArn":"arn:aws:sns:eu-west-1:999999999999:bounces"}`).is(t, 401, "")
	r.report("resend", "", "{}").is(t, 404, "not-found")
	r.do("GET", "/hooks/brevo", "", "").is(t, 405, "method-not-allowed")
	const brevo = "Bearer brevo-0123456789abcdef"
	for _, body := range []string{`{"event":"opened","email":"a@example.com"}`, "not JSON", "", "[]", `{"event":7}`, "\xff", `{"event":"spam"}`, `{"event":"spam","email":"no address"}`, strings.Repeat("[", 100_000), `{"event":"opened","tag":"` + strings.Repeat("x", 1<<20-100) + `"}`} {
		r.report("brevo", brevo, body).is(t, 200, "")
	}
	r.report("brevo", brevo, strings.Repeat("x", 1<<20+1)).is(t, 413, "body-too-large")
	r.request("POST", "/hooks/brevo", http.Header{"Authorization": {brevo}, "Content-Encoding": {"gzip"}}, "x").is(t, 400, "bad-request")
	r.do("GET", "/metrics", "", "").contains(t, `mailgate_bounces_total{kind="other",outcome="counted",provider="brevo"} 7`, `mailgate_bounces_total{kind="complaint",outcome="unproven",provider="brevo"} 2`)
	r.do("GET", "/admin/suppressions", opsKey, "").reads(t, `{"suppressions":[]}`)
	sent, _ := r.send("alice@example.com").body["message_id"].(string)
	_ = r.Store.Close()
	r.postmark("HardBounce", "alice@example.com", strings.Trim(sent, "<>")).is(t, 503, "store-unavailable")
	r.report("brevo", brevo, `{"event":"spam","email":"alice@example.com","X-Mailin-custom":"`+strings.Trim(sent, "<>")+`"}`).is(t, 429, "")
}

// A flood of large bodies takes the memory of a few: the others are refused before they come.
func TestBounce_LargeBodies_FewAtOnce(t *testing.T) {
	r := newRig(t, setup{options: bouncesOn(t)})
	began, taken := time.Now(), atomic.Int64{}
	const all = 60
	var asked sync.WaitGroup
	for range all {
		asked.Go(func() {
			conn := must.Get(net.Dial("tcp", r.Addr))(t)
			defer conn.Close()
			must.Get(io.WriteString(conn, "POST /hooks/brevo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n"))(t)
			switch line := must.Get(bufio.NewReader(conn).ReadString('\n'))(t); line {
			case "HTTP/1.1 100 Continue\r\n":
				taken.Add(1)
			case "HTTP/1.1 413 Request Entity Too Large\r\n":
			default:
				t.Errorf("answered %s", line)
			}
		})
	}
	asked.Wait()
	if most := 17 + int64(time.Since(began).Seconds()*16/5); taken.Load() < 16 || taken.Load() > most && most < all {
		t.Errorf("%d were taken, of which at most %d may be", taken.Load(), most)
	}
	r.report("brevo", "Bearer brevo-0123456789abcdef", strings.Repeat("x", 60<<10)).is(t, 200, "")
}

// A call whose origin is not known yet is to be repeated, and is no failure of the records.
func TestBounce_CertificateUnknown_Repeated(t *testing.T) {
	r := newRig(t, setup{options: bouncesOn(t)})
	got := r.report("ses", "", `{"Type":"Notification","Timestamp":"2026-11-20T12:00:00.000Z","TopicArn":"arn:aws:sns:eu-west-1:123456789012:bounces","SigningCertURL":"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-9c6465fa7f48f5cacd23014631ec1136.pem"}`)
	got.is(t, 503, "busy")
	if got.header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
}

// slowHook is a provider whose signatures take until end to check.
type slowHook struct {
	hooks.Reporter
	busy, most atomic.Int64
	end        chan struct{}
}

func (h *slowHook) Genuine(*hooks.Call) error {
	now := h.busy.Add(1)
	defer h.busy.Add(-1)
	for most := h.most.Load(); now > most && !h.most.CompareAndSwap(most, now); most = h.most.Load() {
	}
	<-h.end
	return hooks.ErrForged
}

// A flood of forged calls has few signatures checked at a time. The others are to be repeated, so that no genuine one among them is lost.
func TestHook_ForgedFlood_FewChecksAtOnce(t *testing.T) {
	slow := &slowHook{Reporter: must.Get(hooks.NewBrevo("brevo-0123456789abcdef"))(t), end: make(chan struct{})}
	r := newRig(t, setup{options: func(o *apitest.Options) { bouncesOn(t)(o); o.Hooks[2] = slow }})
	few := 2 * runtime.GOMAXPROCS(0)
	answers := make(chan int, 3*few)
	for range cap(answers) {
		go func() { answers <- r.report("brevo", "", "{}").status }()
	}
	for range 2 * few {
		if status := <-answers; status != 429 { // Brevo's 503
			t.Errorf("a call that waits is answered %d", status)
		}
	}
	close(slow.end)
	for range few {
		if status := <-answers; status != 401 {
			t.Errorf("a forged call is answered %d", status)
		}
	}
	if most := slow.most.Load(); most != int64(few) {
		t.Errorf("%d signatures were checked at once", most)
	}
}
