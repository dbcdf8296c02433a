package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
)

// chooses selects an entry of a list.
func (tb *tab) chooses(id, value string) {
	tb.t.Helper()
	tb.isTrue(fmt.Sprintf(`[...document.getElementById(%q).options].some((one) => one.value === %q)`, id, value))
	tb.run(fmt.Sprintf(`((list) => { list.value = %q; list.dispatchEvent(new Event("change", { bubbles: true })); })(document.getElementById(%q))`, value, id))
}

// clipboard keeps what a page copies.
const clipboard = `Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } })`

// cards describes the requests, the oldest first: what came of each, the visitor, and whether it is a card whose parts are in it.
const cards = `[...document.querySelectorAll("#requests tr:not(.whole)")].reverse().map((card) => {
	const { left, right } = card.getBoundingClientRect();
	const isCard = parseFloat(getComputedStyle(card).borderTopLeftRadius) > 0 && left >= 0 && right <= innerWidth
		&& [...card.children].every((one) => !one.checkVisibility() || one.getBoundingClientRect().left > left && one.getBoundingClientRect().right < right);
	return [card.children[1].textContent, card.children[3].textContent.split(" · ").at(-1), isCard && "card"].join(" ");
}).join(", ")`

// A row opens into all that is known of the request, to be put into a ticket or asked for again.
func TestConsole_Request_OpensAndIsCopied(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	s.post("/send-code", `{"email":"bob@example.com","client_ip":"203.0.113.7","purpose":"sign-up"}`)
	s.post("/send-code", `{"email":"bob@example.com","client_ip":"203.0.113.7"}`)
	v.signsIn(s)
	v.run(clipboard)
	v.isTrue(`document.querySelectorAll("#requests tr").length === 2`)
	v.click("#requests tr:nth-child(2) button")
	v.is(`document.querySelector("#requests tr:nth-child(2) button").ariaExpanded`, "true")
	for _, want := range []string{"request_id", "purposesign-up", "said", "doorhttp", "visitor203.0.113.7"} {
		v.reads("requests", want)
	}
	v.is(`/T\d\d:\d\d:\d\d\.\d\d\dZ/.test(document.querySelector(".whole").textContent)`, "true") // the date and the zone
	v.looksRight("console-request", ".whole .quiet")
	v.click(".whole .quiet")
	v.is(`["mailbox", "outcome", "key"].map((name) => JSON.parse(copied)[name]).join() + copied.split("\n").length`, "0862140cc9,sent,shop1")
	v.reads("requests", "Copied")
	v.click(".whole .quiet:last-child")
	v.is(`copied.replace(location.origin, "").replace(/=[0-9a-f]+/, "=")`, `curl -s '/admin/requests?request_id=' -H "Authorization: Bearer $ADMIN"`)
	found := get[string](v, `fetch(copied.match(/'(.*)'/)[1], { headers: { Authorization: "Bearer `+apitest.AdminKey+`" } }).then((answer) => answer.text())`)
	if !strings.Contains(found, `"purpose":"sign-up"`) || strings.Contains(found, "quota-exceeded") {
		t.Errorf("the copied request finds %s", found)
	}

	// A phone shows each as a card.
	v.size(390, 844)
	v.is(cards, "sent 203.0.113.7 card, quota-exceeded 203.0.113.7 card")
	v.size(1280, 800)

	// Where the browser has no clipboard, as on a page without TLS, the text is there to be marked.
	v.run(`navigator.clipboard.writeText = undefined`)
	v.click("#copy-curl")
	v.reads("find-note", "curl -s 'http")
	v.click("#requests tr:nth-child(2) button")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 2`)
}

// The lists of the filter have what requests have. What is chosen is in the page's address, for a reload and a
// colleague; who was sent an email is not.
func TestConsole_Filter_ListsWhatExists(t *testing.T) {
	t.Parallel()
	s, v := newServer(t, nil), newVisitor(t)
	s.sendCode("alice@example.com")
	s.sendCode("alice@example.com")
	s.sendCode("bob@example.com")
	v.visit(s.URL + "/admin#outcome=bounced&node=gone")
	v.enters("key", apitest.AdminKey)
	v.reads("requests-pill", "live")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 0`)
	const options = `[...document.querySelectorAll("#find select")].filter((list) => list.checkVisibility()).map((list) => [...list.options].slice(1).map((one) => one.textContent).join()).join(" ")`
	v.isTrue(options + ` === "sent,quota-exceeded,bounced mailbox shop http gone Last 15 minutes,Last hour,Last 6 hours"`)
	v.chooses("find-node", "")
	v.isTrue(`!document.getElementById("find-node").checkVisibility()`)
	v.chooses("find-outcome", "quota-exceeded")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 1`)
	v.looksRight("console-filter", "#find-outcome")
	v.chooses("find-minutes", "15")
	v.is("location.hash", "#outcome=quota-exceeded&minutes=15")
	v.enters("find-whose", "alice@example.com")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 1`)
	v.is("location.hash", "#outcome=quota-exceeded&minutes=15")
	v.click("#requests td:nth-child(3) button")
	v.reads("found-title", "alice@example.com")
	v.isTrue(`/^#outcome=quota-exceeded&minutes=15&mailbox=[0-9a-f]{10}$/.test(location.hash)`)
	v.reload()
	v.reads("found-title", "alice@example.com")
	v.reads("requests", "quota-exceeded")
	v.is(`document.querySelectorAll("#requests tr").length + document.getElementById("find-minutes").value`, "115")

	// A colleague's tab knows the mailbox by its hash alone.
	colleague := v.another()
	colleague.visit(s.URL + "/admin" + get[string](v, `location.hash.replace("quota-exceeded", "sent")`))
	colleague.enters("key", apitest.AdminKey)
	colleague.reads("requests", "sent")
	colleague.is(`document.querySelectorAll("#requests tr").length + String(document.getElementById("found").hidden)`, "1true")
	v.run(`location.hash = "#log=audit"`)
	v.reads("requests-title", "Audit log")
	v.isTrue(`document.querySelectorAll("#requests tr").length === 0`)
	v.click("#sign-out")
	v.is(`location.hash + document.getElementById("find-outcome").options.length`, "1")
}
