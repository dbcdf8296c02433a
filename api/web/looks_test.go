package web_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/need"
)

// A state is one that a page can be in.
type state struct {
	name   string
	enter  func(v *tab, s *server)
	marked []string // what stands out where colours are forced: by its edge, ground or drawing
}

// states are entered one after the other, each page in a tab of its own.
var states = map[string][]state{
	"signup": {
		{"error", func(v *tab, s *server) { v.visit(s.URL); v.enters("email", "alice"); v.reads("ask-note", "no @") }, nil},
		{"wait", func(v *tab, s *server) {
			s.sendCode("heidi@example.com")
			v.enters("email", "heidi@example.com")
			v.reads("status", "429")
		}, []string{".pill", ".operator", "#ring", ".tiers i.used"}},
		{"code", func(v *tab, s *server) {
			v.enters("email", "a.person.with.quite.a.long.name@example.com")
			v.reads("prove-title", "Check your email")
			v.enters("code", s.wrongCode("a.person.with.quite.a.long.name@example.com"))
			v.reads("prove-note", "4 attempts left")
			v.run(`document.querySelector("#verdict details").open = true`)
		}, []string{".toast", ".badge"}},
		{"done", func(v *tab, s *server) {
			v.enters("code", s.Code("a.person.with.quite.a.long.name@example.com"))
			v.reads("done-title", "Welcome")
		}, nil},
	},
	"inbox": {
		{"empty", func(v *tab, s *server) { v.visit(s.URL + "/inbox"); v.reads("empty", "No email yet.") }, nil},
		{"open", func(v *tab, s *server) {
			s.sendCode("a.person.with.quite.a.long.name@a-company-with-a-long-name.example")
			v.isTrue(`document.querySelectorAll("#mails button").length === 1`)
			v.run(`document.querySelector("#mails button").click()`)
			v.reads("subject", "is your code")
			s.receives("bob@example.com", "two")
			v.isTrue(`document.querySelectorAll("#mails button").length === 2`)
		}, []string{".badge", "#mails .new strong::before"}},
		{"source", func(v *tab, s *server) { v.run(`document.getElementById("tab-source").click()`) }, nil},
	},
	"console": {
		{"signed-out", func(v *tab, s *server) {
			v.visit(s.URL + "/admin")
			v.enters("key", "no-such-key")
			v.reads("sign-in-note", "This is not an admin key.")
		}, nil},
		{"mailbox", func(v *tab, s *server) {
			s.sent("carol@example.com", 20*time.Hour, 9*time.Hour, 5*time.Hour, 40*time.Minute, 20*time.Minute, 20*time.Second)
			s.sendCode("carol@example.com")
			v.enters("key", apitest.AdminKey)
			v.reads("refusals", "mailboxminute1")
			v.looksUp("carol@example.com")
			v.run(`document.querySelector("#found details").open = true`)
		}, []string{"#found-pill", "#reset", ".lanes .band", ".lanes .edge", ".lanes .send"}},
		{"reset", func(v *tab, s *server) { v.enters("reason", "ticket 4711"); v.reads("confirm-text", "6 emails") }, nil},
		{"what-if", func(v *tab, s *server) {
			v.run("keep.click()")
			v.enters("tiers", "minute=1/2m,hour=2/1h,day=3/24h")
			v.reads("tried-sum", " refused in ")
		}, []string{".lanes .refused"}},
	},
	"docs": {
		{"sent", func(v *tab, s *server) {
			v.visit(s.URL + "/api")
			v.isTrue(`document.querySelector("#sendCode .sample")?.textContent.includes("curl")`)
			v.run(`document.querySelector("#sendCode .primary").click()`)
			v.isTrue(`document.querySelector("#sendCode output").textContent.includes("server_time")`)
			v.run(`document.querySelectorAll("#sendCode details").forEach((one) => { one.open = true; })`)
		}, []string{".try button", ".try input"}},
	},
}

// A look is a way in which people see a page.
type look struct {
	name   string
	width  int64
	height int64
	media  string // of prefers-color-scheme
	forced bool   // the visitor's few colours replace those of the page
	large  bool   // letters of twice the size
	rules  string // of axe-core
}

const (
	allRules    = `{ type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }`
	colourRules = `{ type: "rule", values: ["color-contrast"] }`
)

var looks = []look{
	{name: "light", width: 1280, media: "light", rules: allRules},
	{name: "phone", width: 390, media: "dark", rules: colourRules},
	{name: "large", width: 320, media: "light", large: true},
	{name: "forced", width: 1280, media: "dark", forced: true},
}

// In every state and look, axe-core finds nothing, all fits the width, and what has a meaning
// stands out.
func TestPages_EveryLook_IsAccessible(t *testing.T) {
	axe := axe(t)
	for name, all := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, v := newServer(t, nil), newVisitor(t)
			v.size(1280, 900)
			for _, state := range all {
				state.enter(v, s)
				for _, look := range looks {
					v.wear(look)
					v.picture(name + "-" + state.name + "-" + look.name)
					for _, fault := range v.faults(state, look, axe) {
						t.Errorf("%s, %s: %s", state.name, look.name, fault)
					}
				}
				v.wear(looks[0])
			}
		})
	}
}

func (tb *tab) wear(look look) {
	tb.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.media}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if look.forced {
		features = append(features, &emulation.MediaFeature{Name: "forced-colors", Value: "active"})
	}
	call(tb, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	tb.run(fmt.Sprintf(`document.documentElement.style.fontSize = %t ? "200%%" : ""`, look.large))
	tb.size(look.width, cmp.Or(look.height, 900))
}

func (tb *tab) faults(state state, look look, axe string) (faults []string) {
	tb.t.Helper()
	if look.rules != "" {
		if !get[bool](tb, `"axe" in globalThis`) {
			tb.do(chromedp.Evaluate[chromedp.Void](axe))
		}
		faults = append(faults, get[[]string](tb, `axe.run(document, { resultTypes: ["violations"], iframes: false, runOnly: `+look.rules+` }).then(({ violations }) => violations.flatMap((one) =>
			one.nodes.map((node) => one.id + ": " + one.help + ", at " + node.target.flat().join(" ") + " " + node.any.map((why) => why.message).join(" "))))`)...)
		faults = append(faults, get[[]string](tb, faintFields)...)
	}
	if wide := get[float64](tb, tooWide); wide > 0 {
		faults = append(faults, fmt.Sprintf("the page is %v px too wide", wide))
	}
	faults = append(faults, get[[]string](tb, `[...document.querySelectorAll("button:not(.tabs button), svg text:not(.many)")].filter((one) => one.checkVisibility() && (one.matches("button")
		? one.scrollWidth > one.clientWidth : one.getBoundingClientRect().bottom > one.closest("svg").getBoundingClientRect().bottom + 1)).map((one) => "cut off: " + one.textContent)`)...)
	if look.forced {
		for _, name := range state.marked {
			if by := get[float64](tb, fmt.Sprintf(standsOut, name)); by < 3 {
				faults = append(faults, fmt.Sprintf("%s stands out by %.2f", name, by))
			}
		}
	}
	return faults
}

// tooWide is by how many px a page is wider than its window. A phone shows such a page smaller,
// so innerWidth does not tell.
const tooWide = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

// colours computes contrasts, from 1 to 21, and what is behind and around an element.
const colours = `
	const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
	const light = (colour) => parts(colour).slice(0, 3).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const contrast = (one, other) => {
		const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
		return (high + 0.05) / (low + 0.05);
	};
	const solid = (colour) => /^rgb/.test(colour) && parts(colour)[3] !== 0;
	const ground = (element) => {
		const colour = getComputedStyle(element).backgroundColor;
		return solid(colour) || !element.parentElement ? colour : ground(element.parentElement);
	};
	const find = (name) => {
		const [path, pseudo] = name.split("::");
		const element = document.querySelector(path);
		return { element, style: getComputedStyle(element, pseudo && "::" + pseudo), around: ground(pseudo ? element : element.parentElement) };
	};
	const edge = (style) => (style.borderTopStyle === "none" || parseFloat(style.borderTopWidth) === 0 ? "none" : style.borderTopColor);`

// standsOut is the contrast of an element's edge, ground or drawing with what is around it.
const standsOut = `(() => {` + colours + `
	const { style, around } = find(%q);
	return Math.max(...[edge(style), style.backgroundColor, style.fill, style.stroke].filter(solid).map((colour) => contrast(colour, around)), 1);
})()`

// faintFields are those whose edge does not stand out by 3 to 1, or whose placeholder not by 4.5,
// which axe-core does not check. A field with the focus has an outline.
const faintFields = `(() => {` + colours + `
	return [...document.querySelectorAll("input:not([type=radio]), textarea, select")].filter((field) => field.checkVisibility() && field !== document.activeElement).flatMap((field) => {
		const border = getComputedStyle(field).borderTopColor;
		const { color, opacity } = getComputedStyle(field, "::placeholder");
		const mixed = parts(color).slice(0, 3).map((c, i) => c * opacity + parts(ground(field))[i] * (1 - opacity));
		return [Math.min(contrast(border, ground(field)), contrast(border, ground(field.parentElement))) < 3 && "faint edge: " + field.outerHTML,
			field.placeholder && contrast(mixed.join(), ground(field)) < 4.5 && "faint placeholder: " + field.outerHTML].filter(Boolean);
	});
})()`

// axe is axe-core, which finds barriers for people with disabilities.
func axe(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("../../bin/axe-core-*/axe.min.js")
	if err != nil || len(found) != 1 {
		need.Missing(t, "axe-core is missing: run make test, which fetches it with npm")
	}
	return string(must(os.ReadFile(found[0])))
}

// picture leaves a picture of the whole page in the folder screenshots, if there is one.
func (tb *tab) picture(name string) {
	tb.t.Helper()
	const folder = "../../screenshots"
	if _, err := os.Stat(folder); err != nil {
		return
	}
	size := get[[]float64](tb, `[innerWidth, Math.min(document.documentElement.scrollHeight, 6000)]`)
	tb.save(filepath.Join(folder, name+".png"), page.CaptureScreenshotParams{Clip: &page.Viewport{Width: size[0], Height: size[1], Scale: 1}})
}

func (tb *tab) save(path string, how page.CaptureScreenshotParams) {
	tb.t.Helper()
	beyond := true
	how.CaptureBeyondViewport = &beyond
	if err := os.WriteFile(path, call(tb, page.CaptureScreenshot, how).Data, 0o644); err != nil {
		tb.t.Fatal(err)
	}
}
