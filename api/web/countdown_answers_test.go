package web_test

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/valyala/fasthttp"
)

// A refusal without a token may be another mailbox's, unless it names the same moment: the token
// at hand must not shorten it. Where another rule refuses, no tier of the mailbox is blamed.
func TestCountdown_OtherRefusals_KeepTheirWait(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	p.says(200, still(30_000, first))
	v.update(sent(60_000, first, "a-token"))
	v.update(refused("minute", 31_000, first))
	v.isSeen()
	v.shows("One email a minute. Next in 0:30.")
	v.update(refused("hour", 3_000_000, second))
	v.isSeen()
	v.pass(1000)
	v.mustShow("Five emails in an hour: limit reached. Next in 49:59.")
	if p.asks() != 1 {
		t.Errorf("asked for %q", p.tokens())
	}
	v.update(fmt.Sprintf(`{"status":429,"rule":"client-ip","limit":"minute","wait_ms":41500,"retry_at":%q,"countdown":"b-token",
		"limits":[{"name":"minute","limit":1,"window_ms":60000,"remaining":1,"wait_ms":0}]}`, first))
	v.mustShow("Next in 0:42.")
	p.says(200, strings.Replace(still(40_000, first), "mailbox", "client-ip", 1))
	v.reload()
	v.shows("Next in 0:40.")
}

// A replayed answer has the wait of an earlier moment, so the server is asked. An answer that was
// overtaken by a send is ignored.
func TestCountdown_OldAnswer_IsCheckedOrIgnored(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	p.says(200, still(5000, first))
	v.update(strings.Replace(sent(60_000, first, "a-token"), "{", `{"replayed":true,`, 1))
	v.shows("One email a minute. Next in 0:05.")
	goOn := p.hesitates()
	p.says(200, still(1000, first))
	v.run(`window.asked = document.querySelector("mailgate-countdown").refresh()`)
	v.until("it asks", func() bool { return p.tokens() == "a-token a-token" })
	v.update(sent(60_000, second, "b-token"))
	goOn()
	get[bool](v, "asked.then(() => true)")
	v.mustShow("One email a minute. Next in 1:00.")
}

func TestCountdown_InvalidAnswer_ChangesNothing(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, beside)
	for _, answer := range []string{"null", "undefined", `"no"`, "{wait_ms: -1}", "{wait_ms: NaN}", "{wait_ms: Infinity}", `{wait_ms: "60000"}`, "{status: 503}"} {
		v.is("document.querySelector('mailgate-countdown').update("+answer+")", "false")
		v.mustShow("")
	}
	v.update(sent(60_000, first, "a-token"))
	for _, answer := range []string{"null", "no JSON", `{"wait_ms":-1}`, `{"wait_ms":1e999}`, `{"wait_ms":"0"}`} {
		p.says(200, answer)
		v.refreshed()
		v.mustShow("One email a minute. Next in 1:00.")
	}
	v.run(`localStorage["mailgate-countdown:resend"] = '{"wait":"x","until":{}}'`)
	v.reload()
	v.mustShow("")
}

// A server that renders writes attributes. The page may be an old copy, so the server is asked.
// Frameworks write them late, several at once, or as properties of an element to be defined.
func TestCountdown_Attributes_AreOneAnswer(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, "")
	p.says(200, strings.Replace(still(59_000, first), "minute", "hour", 1))
	p.shows(v, with(`src="/countdown/a-token" wait-ms="60000" limit="hour" limits='`+tiers+`'`))
	v.shows("Five emails in an hour: limit reached. Next in 0:59.")
	if s := v.look(); s.count("start") != 1 || len(s.Said) != 1 || p.asks() != 1 {
		t.Errorf("asked for %q, saw %+v", p.tokens(), s)
	}
	v.element("reset()")
	p.shows(v, beside)
	v.run(`Object.assign(document.querySelector("mailgate-countdown"), {src: "/countdown/b-token", limit: "minute", limits: ` + tiers + `, waitMs: 60000})`)
	v.shows("One email a minute. Next in 1:00.")
	v.pass(10_000)
	v.element(`setAttribute("src", "/countdown/c-token")`) // the next send, with the same wait
	v.shows("One email a minute. Next in 1:00.")
	if s := v.look(); s.count("start") != 2 || p.asks() != 1 {
		t.Errorf("asked for %q, saw %+v", p.tokens(), s)
	}
	v.run(`(() => {
		window.early = document.createElement("later-countdown");
		Object.assign(early, { waitMs: 5000, limits: ` + tiers + `, limit: "hour" });
		document.body.append(early);
		customElements.define("later-countdown", class extends customElements.get("mailgate-countdown") {});
	})()`)
	v.is(`early.shadowRoot.querySelector("[part=text]").textContent`, "Five emails in an hour: limit reached. Next in 0:05.")
}

// typesFile describes the interface to people and to editors.
//
//go:embed mailgate-countdown.d.ts
var typesFile string

// The file is small, and does nothing where there are no elements: on a server that renders, or
// in a worker.
func TestCountdownFile_Anywhere_LoadsSmall(t *testing.T) {
	t.Parallel()
	file := must.Have(fs.ReadFile(web.FS(), "mailgate-countdown.js"))
	if n := len(fasthttp.AppendGzipBytesLevel(nil, file, fasthttp.CompressBestCompression)); n >= 8*1024 {
		t.Errorf("%d bytes, and 8 KB is the most", n)
	}
	node := exec.Command(need.Program(t, "node"), "--input-type=module")
	node.Stdin = strings.NewReader(string(file) + "\nprocess.stdout.write(MailgateCountdown.name)")
	if out, err := node.CombinedOutput(); err != nil || string(out) != "MailgateCountdown" {
		t.Errorf("%v: %s", err, out)
	}
}

// What the types promise is there.
func TestCountdownTypes_Members_Exist(t *testing.T) {
	t.Parallel()
	_, v := newSite(t, beside)
	_, class, _ := strings.Cut(typesFile, "\nexport class ")
	class, _, found := strings.Cut(class, "\n}\n")
	members := regexp.MustCompile(`(?m)^  (?:readonly |get |set |static )?(\w+)[(:]`).FindAllStringSubmatch(class, -1)
	if !found || len(members) < 14 {
		t.Fatalf("found %d members in the types", len(members))
	}
	for _, member := range members {
		v.is(fmt.Sprintf(`[document.querySelector("mailgate-countdown"), customElements.get("mailgate-countdown")].some((it) => %q in it)`, member[1]), "true")
	}
}
