package web_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/challenge"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
)

const challenged = `<form><label>Email <input name="email" value="alice@example.com"></label><input type="hidden" name="challenge"><button id="resend">Send again</button></form>
<mailgate-countdown for="resend"></mailgate-countdown>`

// challengePage opens a page with the element under a policy, and what happens to challenges in window.solved.
func challengePage(t *testing.T, policy, language string) *tab {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/style.css" {
			w.Header().Set("Content-Type", "text/css")
			fmt.Fprint(w, "body { font: 16px sans-serif; color-scheme: light dark } input, button { font: inherit; min-height: 28px }")
			return
		}
		if r.URL.Path != "/" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, "%s", must.Have(fs.ReadFile(web.FS(), "mailgate-countdown.js")))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		fmt.Fprintf(w, `<!doctype html><html lang=%q><head><title>Sign up</title><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css">
<script type="module" src="/mailgate-countdown.js"></script></head><body><main><h1>Sign up</h1>%s</main></body></html>`, language, challenged)
	}))
	t.Cleanup(server.Close)
	v := newVisitor(t)
	v.visit(server.URL)
	v.isTrue(`!!customElements.get("mailgate-countdown")`)
	v.run(`(() => { window.solved = []; window.digests = 0;
		{ const later = setTimeout; window.setTimeout = (f, ms) => later(f, ms >= 5000 ? 1e9 : ms); } // a slow worker is no silent one
		addEventListener("mailgate-solved", (e) => solved.push(e.detail.challenge));
		addEventListener("mailgate-unsolved", () => solved.push("unsolved"));
		{ const digest = crypto.subtle.digest.bind(crypto.subtle); crypto.subtle.digest = (...of) => { digests++; return digest(...of); }; } })()`)
	return v
}

// required is the answer of a 403 with this challenge.
func required(p challenge.Proof) string {
	return fmt.Sprintf(`{"type":"/docs#challenge-required","status":403,"wait_ms":3600000,"limit":"hour","limits":[],"challenge":%s}`,
		must.Have(json.Marshal(challenge.Offer{ALTCHA: p})))
}

const heldText = `document.querySelector("mailgate-countdown").shadowRoot.querySelector("[part=text]").textContent.trim()`

// The element solves mailgate's challenge in a worker, holds the button meanwhile, and hands the solution to the form
// and the page. Without workers it solves it in the page.
func TestCountdown_Challenge_IsSolvedBesideThePage(t *testing.T) {
	t.Parallel()
	i := must.Get(challenge.New([]byte("sixteen bytes of chance, or more"), nil))(t)
	alice, now := challenge.For{Mailbox: "alice@example.com"}, time.Now().UnixMilli()
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; form-action 'self'; worker-src blob:; img-src data:"
	v := challengePage(t, policy, "en")

	endless := i.Offer(alice, now, true).ALTCHA
	endless.Salt, endless.MaxNumber = endless.Salt+"x", 1<<50
	v.update(required(endless))
	v.isTrue(heldText + ` === "Security check: 0%"`)
	v.is(`document.getElementById("resend").getAttribute("aria-disabled")`, "true")
	v.looksRight("challenge", "button")
	v.click("#resend")
	v.is("solved.length", "0")
	v.is("digests", "0")

	solves := func(p challenge.Proof, page *tab) {
		t.Helper()
		page.update(required(p))
		page.isTrue("solved.length === 1")
		token := get[string](page, "solved.pop()")
		if _, _, err := i.Check(t.Context(), token, alice, now); err != nil {
			t.Errorf("its solution is refused: %v", err)
		}
		page.is(`document.forms[0].elements.challenge.value`, token)
		page.is(`document.getElementById("resend").hasAttribute("aria-disabled")`, "false")
		page.is(heldText, "")
	}
	solves(i.Offer(alice, now, true).ALTCHA, v)
	v.is("digests", "0")
	v.update(`{"wait_ms":1,"challenge":{"altcha":{}}}`)
	v.isTrue(`solved.pop() === "unsolved"`)
	v.is(heldText, "The security check failed. Reload the page to try again.")
	v.update(sent(60_000, first, ""))
	v.is(`document.forms[0].elements.challenge.value`, "")
	v.isTrue(heldText + `.startsWith("One email a minute.")`)

	strict := challengePage(t, "default-src 'none'; script-src 'self'; style-src 'self'; form-action 'self'; require-trusted-types-for 'script'; img-src data:", "zh-CN")
	strict.update(required(endless))
	strict.isTrue(heldText + ` === "安全检查：0%"`)
	solves(i.Offer(alice, now, true).ALTCHA, strict)
	if get[int](strict, "digests") == 0 {
		t.Error("a worker was used against the policy")
	}
	strict.complains("TrustedScriptURL")
	strict.run(`Object.defineProperty(globalThis, "isSecureContext", { value: false }) && Object.defineProperty(crypto, "subtle", { value: undefined })`)
	strict.update(required(i.Offer(alice, now, true).ALTCHA))
	strict.isTrue(`solved.pop() === "unsolved"`)
	strict.is(heldText, "安全检查只能在 https 页面上进行。")
	strict.is(`document.getElementById("resend").hasAttribute("aria-disabled")`, "false")
	strict.complains("TrustedScriptURL")
}

// A worker that never answers is given up after a while, and the page solves the challenge itself.
func TestCountdown_SilentWorker_IsGivenUp(t *testing.T) {
	t.Parallel()
	p, v := newSite(t, `<form><input type="hidden" name="challenge"><button id="resend">Send again</button></form><mailgate-countdown for="resend"></mailgate-countdown>`)
	p.shows(v, p.body)
	v.run(`(() => { globalThis.Worker = class { postMessage() {} terminate() { globalThis.ended = true } }; globalThis.solved = 0; addEventListener("mailgate-solved", () => solved++) })()`)
	v.update(required(must.Get(challenge.New([]byte("sixteen bytes of chance, or more"), nil))(t).Offer(challenge.For{Mailbox: "alice@example.com"}, time.Now().UnixMilli(), true).ALTCHA))
	v.is(`document.getElementById("resend").getAttribute("aria-disabled")`, "true")
	v.pass(4_900)
	v.is("!!globalThis.ended", "false")
	v.pass(100)
	v.is("!!globalThis.ended", "true")
	v.until("the page solves it", func() bool { v.pass(1); return get[int](v, "solved") == 1 })
}

// ALTCHA's widget solves mailgate's challenge, and the element that of ALTCHA's library, which takes its solution.
func TestCountdown_Challenge_AsALTCHA(t *testing.T) {
	t.Parallel()
	need.Long(t)
	need.Program(t, "npm")
	dir := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		command := exec.Command(program, args...)
		command.Dir = dir
		text, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", program, err, text)
		}
		return strings.TrimSpace(string(text))
	}
	run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "altcha@2.3.0", "altcha-lib@1.4.1")
	i := must.Get(challenge.New([]byte("sixteen bytes of chance, or more"), nil))(t)
	alice, now := challenge.For{Mailbox: "alice@example.com"}, time.Now().UnixMilli()
	widget := must.Get(os.ReadFile(filepath.Join(dir, "node_modules/altcha/dist/altcha.js")))(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/altcha.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(widget)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Sign up</title><link rel="icon" href="data:,"><script type="module" src="/altcha.js"></script>
<form><altcha-widget auto="onload" challengejson='%s'></altcha-widget></form>`, must.Have(json.Marshal(i.Offer(alice, now, true).ALTCHA)))
	}))
	t.Cleanup(server.Close)
	v := newVisitor(t)
	v.visit(server.URL)
	v.isTrue(`!!document.querySelector("input[name=altcha]")?.value`)
	if _, _, err := i.Check(t.Context(), get[string](v, `document.querySelector("input[name=altcha]").value`), alice, now); err != nil {
		t.Errorf("the widget's solution is refused: %v", err)
	}

	const lib = `import { createChallenge, verifySolution } from "altcha-lib"; `
	theirs := run("node", "--input-type=module", "-e", lib+`console.log(JSON.stringify(await createChallenge({ hmacKey: "key", maxNumber: 50000, expires: new Date(Date.now() + 300000) })))`)
	page := challengePage(t, "default-src 'none'; script-src 'self'; style-src 'self'; worker-src blob:; img-src data:", "en")
	page.update(`{"wait_ms":1,"challenge":{"altcha":` + theirs + `}}`)
	page.isTrue("solved.length === 1")
	if got := run("node", "--input-type=module", "-e", lib+`console.log(await verifySolution(process.argv[1], "key"))`, get[string](page, "solved[0]")); got != "true" {
		t.Errorf("ALTCHA's library says %s of the element's solution", got)
	}
}

// A visitor of the sign-up page counts as one visitor, whatever address they enter. The page solves the
// challenge of a rule by visitor, and sends again by itself.
func TestSignup_Challenge_IsSolvedAndSent(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, signUpSolves)
}

// newServerThatAsks starts a server that asks for a challenge after its first send of what a rule counts by.
func newServerThatAsks(t *testing.T, by rules.By) *server {
	return newServer(t, func(s *apitest.Server, o *apitest.Options) {
		limiter := func(name, tiers string) *throttle.Limiter {
			return local.New(s.Store.Table(name), must.Get(throttle.ParsePolicy(tiers))(t))
		}
		o.Live.Rules = must.Get(rules.New(rules.Options{Tokens: limiter("tokens", "token=1/20m")},
			rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: s.Mailboxes},
			rules.Rule{Name: "second", By: by, Limiter: limiter("second", "hour=1/1h"), Challenge: true}))(t)
	})
}

func signUpSolves(t *testing.T, newVisitor opener) {
	s := newServerThatAsks(t, rules.ByClientIP)
	v := newVisitor(t, `const ask = window.fetch;
		window.answers = [];
		window.fetch = async (path, ...rest) => {
			const answer = await ask(path, ...rest);
			if (path === "/demo/send-code") window.answers.push(answer.status);
			return answer;
		};`)
	v.asksFor(s, "bob@example.com")
	v.click("#other")
	v.enters("email", "alice@example.com")
	v.reads("to", "alice@example.com")
	v.is("answers.join()", "200,403,200")
	if n := len(s.Mails("alice@example.com")); n != 1 {
		t.Errorf("%d emails were sent", n)
	}
}

// A rule that is not the mailbox's is named where it refuses.
func TestSignup_RuleByVisitor_IsNamed(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *apitest.Server, o *apitest.Options) {
		visitors := local.New(s.Store.Table("visitors"), must.Get(throttle.ParsePolicy("hour=1/1h"))(t))
		o.Live.Rules = must.Get(rules.New(rules.Options{},
			rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: s.Mailboxes},
			rules.Rule{Name: "visitors", By: rules.ByClientIP, Limiter: visitors}))(t)
	})
	v := newVisitor(t)
	v.asksFor(s, "bob@example.com")
	v.click("#other")
	v.enters("email", "alice@example.com")
	v.reads("status", "429 not yet")
	v.reads("why", "hour limit of visitors")
	v.isTrue(`/^Not sent\. Next email in (1 hour|59 minutes.*): hour limit of visitors\.$/.test(announce.textContent)`)
	v.looksRight("signup-visitors")
}
