package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
)

// try sends the request of a route from the page and waits for its answer.
func (tb *tab) try(id, want string) {
	tb.t.Helper()
	form := fmt.Sprintf(`document.querySelector("#%s .try")`, id)
	tb.run(form + `.querySelector("output").textContent = ""`)
	tb.click("#" + id + " .primary")
	tb.isTrue(fmt.Sprintf(`((said) => said.includes(%q) && said.indexOf("x-request-id: ") > said.indexOf(%[1]q))(%s.querySelector("output").textContent)`, want, form))
}

// fills types into a field of a form.
func (tb *tab) fills(id, field, text string) {
	tb.t.Helper()
	tb.run(fmt.Sprintf(`document.querySelector("#%s [name=%s]").select()`, id, field))
	tb.press(text)
}

// The first window has the guides and sending a code, beside a sample of its plainest case. Where no key is
// needed, none is asked for, and none is in the samples.
func TestDocs_FromDev_RequestsCanBeSent(t *testing.T) { inEachBrowser(t, docsFromDevRequestsCanBeSent) }

func docsFromDevRequestsCanBeSent(t *testing.T, newVisitor opener) {
	s, v := newServerWithoutKeys(t), newVisitor(t)
	v.size(1440, 900)
	v.visit(s.URL + "/docs")
	sample := `document.querySelector("#sendCode .sample")`
	v.isTrue(sample + `.textContent !== ""`)
	v.is(sample+".textContent", fmt.Sprintf(`curl '%s/send-code' \
  -H 'Content-Type: application/json' \
  -d '{"email": "Alice@example.com"}'`, s.URL))
	v.is(`document.querySelectorAll("[name=key]").length`, "0")
	v.is(`((nav) => getComputedStyle(nav).position + (nav.clientHeight < innerHeight))(document.querySelector(".routes"))`, "stickytrue")
	v.is(`((sample, text) => sample.top < innerHeight * 0.8 && sample.left > text.right)(`+sample+`.getBoundingClientRect(), document.querySelector("#sendCode p").getBoundingClientRect())`, "true")
	v.is(`location.hash + [...document.querySelectorAll(".bar a")].map((link) => link.pathname).join()`, "/,/,/inbox,/admin,/docs")
	v.try("sendCode", `"status": "sent"`)
	v.is(`((example, status) => example.left > status.right && example.top < status.bottom)(document.querySelector("#sendCode [data-status='429'] .first").getBoundingClientRect(), document.querySelector("#sendCode [data-status='429'] .status").getBoundingClientRect())`, "true")
	v.run(`document.querySelectorAll("#sendCode details").forEach((one) => { one.open = true; })`)
	v.looksRight("docs-sent", ".try button", ".try input")
	v.try("sendCode", `"limit": "minute"`)
	v.run(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`) // a headless browser has no clipboard
	v.click("#sendCode .copy")
	v.isTrue(`copied === ` + sample + `.textContent && document.querySelector("#sendCode .copy").textContent === "Copied"`)
	v.press("/")
	v.hasFocus("search")
	v.run("search.select()")
	v.press("RESET guesses")
	v.is(`[...document.querySelectorAll("article, .routes li")].filter((one) => one.checkVisibility()).map((one) => one.id || one.textContent).join()`, "Sending codes,POST /admin/mailboxes/{email}/reset,sending,resetMailbox")
	v.drawn()
	v.picture("docs-search")
	v.run("search.select()")
	v.press("503 mailboxes")
	v.is(`document.getElementById("lookAtMailbox").checkVisibility() && scrollY === 0`, "true")
	v.is(`[...document.querySelectorAll("#lookAtMailbox [data-status]")].filter((one) => one.checkVisibility()).map((one) => one.dataset.status).join()`, "503")
	v.run("search.select()")
	v.press("413")
	v.is(`[...document.querySelectorAll("article, [data-status]")].filter((one) => one.checkVisibility()).map((one) => one.id || one.dataset.status).join()`, "errors,413,body-too-large")
	v.is(`[...document.querySelectorAll("h2")].filter((one) => one.checkVisibility()).map((one) => one.textContent).join()`, "Errors,Errors")
	v.run("search.select()")
	v.press("xyz")
	v.reads("unmatched", "No match.")
	v.press(kb.Escape)
	v.isTrue(`document.getElementById("sendCode").checkVisibility()`)
	v.fills("lookAtMailbox", "email", "Alice@example.com")
	v.try("lookAtMailbox", `"limit": "minute"`)
	v.fills("inspectMailbox", "email", "alice@example.com")
	v.try("inspectMailbox", `"sends": [`)
	v.run(`document.querySelector("#sendCode select").focus()`)
	v.press("All")
	v.isTrue(sample + `.textContent.includes("482913")`)
	v.run(`document.querySelector("#sendCode-curl").focus()`)
	v.press(kb.ArrowRight)
	v.isTrue(sample + `.textContent.startsWith("request, err := ")`)
	v.is("document.activeElement.id", "sendCode-go")
	v.is("document.cookie.length + localStorage.length", "0")
}

// The guides are in front of the routes, whole, and a link to one opens it.
func TestDocs_Guides_AreInFront(t *testing.T) { inEachBrowser(t, docsGuidesAreInFront) }

func docsGuidesAreInFront(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	v.visit(s.URL + "/docs#sending")
	v.isTrue(`document.querySelector("#sending table").checkVisibility()`)
	v.is(`[...document.querySelectorAll("article")].slice(0, 4).map((one) => one.id).join()`, "getting-started,sending,countdown,sendCode")
	v.run(`document.querySelector('#sending a[href="#problems"]').click()`)
	v.isTrue(`document.getElementById("problems").getBoundingClientRect().top < innerHeight`)
	v.run(`document.querySelector('.routes a[href="#getting-started"]').click()`)
	v.isTrue(`document.querySelector("#getting-started pre").checkVisibility()`)
	v.is(`[...document.querySelectorAll("a")].map((one) => one.getAttribute("href")).filter((to) => !/^(https:|[/]|#)/.test(to) || (to.length > 1 && to.startsWith("#") && !document.getElementById(to.slice(1)))).join()`, "")
	v.run(`document.querySelectorAll(".guide details").forEach((one) => { one.open = true; })`)
	v.looksRight("docs-guides")
}

// Each answer has an example, or says what it is. On a phone the examples are closed until a status is searched.
func TestDocs_Answers_HaveExamples(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	v.size(390, 700)
	v.visit(s.URL + "/docs")
	v.isTrue(`document.querySelector("#sendCode .sample").textContent !== ""`)
	v.is(`[...document.querySelectorAll("[data-status]")].filter((one) => !one.querySelector("pre") && !one.querySelector(".lead").textContent.trim().match("^(No body|([a-z]+/[a-z+-]+ ?)+)$")).map((one) => one.textContent).join()`, "")
	v.is(`[...document.querySelectorAll(".first")].some((one) => one.open)`, "false")
	v.run("search.focus()")
	v.press("404")
	v.isTrue(`document.querySelector("#count [data-status='404'] pre").checkVisibility() && !document.querySelector("#count [data-status='429']").checkVisibility()`)
	v.looksRight("docs-404")
}

// A key that is typed serves all requests of its kind and is shown in no sample.
func TestDocs_TypedKey_IsNotShown(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t, withoutStorage)
	v.visit(s.URL + "/docs")
	v.fills("sendCode", "key", apitest.APIKey)
	v.is(`[...document.querySelectorAll("[name=key]")].map((field) => field.value).filter((value, i, all) => all.indexOf(value) === i).join()`, apitest.APIKey+",")
	v.is(fmt.Sprintf(`document.body.textContent.includes(%q) + document.querySelector("#sendCode .sample").textContent`, apitest.APIKey), fmt.Sprintf(`falsecurl '%s/send-code' \
  -H 'Authorization: Bearer YOUR-KEY' \
  -H 'Content-Type: application/json' \
  -d '{"email": "Alice@example.com"}'`, s.URL))
	v.fills("lookAtMailbox", "email", "alice@example.com")
	v.try("lookAtMailbox", `"remaining": 1`)
}

// The type of a problem, followed from where it was answered, leads to what explains it.
func TestDocs_TypeOfProblem_LeadsToItsExplanation(t *testing.T) {
	inEachBrowser(t, docsTypeOfProblemLeadsToItsExplanation)
}

func docsTypeOfProblemLeadsToItsExplanation(t *testing.T, newVisitor opener) {
	s, v := newServer(t, nil), newVisitor(t)
	for _, from := range []string{s.URL + "/no/such/page", s.URL + "/no-route"} {
		response := must.Have(http.Get(from))
		var problem struct{ Type string }
		must.Have(0, json.NewDecoder(response.Body).Decode(&problem))
		response.Body.Close()
		v.visit(must.Have(must.Have(url.Parse(from)).Parse(problem.Type)).String())
		v.isTrue(`document.getElementById("not-found").checkVisibility()`)
		v.isTrue(`((at) => at.top >= 0 && at.bottom <= innerHeight)(document.getElementById("not-found").getBoundingClientRect())`)
	}
}

// The samples work as they are: each sends a code to an address with a quote in it.
func TestDocs_Samples_SendTheCode(t *testing.T) {
	t.Parallel()
	s, v := newServerWithoutKeys(t), newVisitor(t)
	v.visit(s.URL + "/docs")
	v.isTrue(`document.querySelector("#sendCode .sample").textContent !== ""`)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for i, language := range []string{"curl", "go", "typescript"} {
		v.run(`document.querySelector("#sendCode [name=body]").value = ""`)
		v.fills("sendCode", "body", fmt.Sprintf(`{"email": "o'neil%d@example.com"}`, i))
		v.click("#sendCode-" + language)
		v.isTrue(fmt.Sprintf(`document.querySelector("#sendCode .sample").textContent.includes("neil%d@example.com")`, i))
		sample := get[string](v, `document.querySelector("#sendCode .sample").textContent`)
		var command *exec.Cmd
		switch language {
		case "curl":
			command = exec.Command("sh", "-c", "command -v curl > /dev/null || alias curl=false\n"+sample)
		case "go":
			command = exec.Command("go", "run", write("main.go", "package main\nimport (\"net/http\"; \"strings\")\nfunc send() error {\n"+sample+"\nreturn nil }\nfunc main() { if err := send(); err != nil { panic(err) } }\n"))
		case "typescript":
			check := exec.Command(need.Program(t, "tsc"), "--noEmit", "--strict", "--target", "es2022", "--module", "es2022", write("sample.ts", sample+"\nexport {};\n"))
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\n%s", err, out, sample)
			}
			command = exec.Command(need.Program(t, "node"), write("sample.mjs", sample))
		}
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", language, err, out, sample)
		}
		s.Code(fmt.Sprintf("o'neil%d@example.com", i))
	}
}
