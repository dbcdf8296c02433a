package web_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
)

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

// looksRight checks the page as it is in every look: axe-core finds nothing, all fits the width, and
// what is marked stands out where colours are forced, by its edge, ground or drawing. The window is then
// as wide as a computer's.
func (tb *tab) looksRight(name string, marked ...string) {
	tb.t.Helper()
	if tb.inFirefox() {
		return
	}
	for _, look := range looks {
		tb.wear(look)
		tb.picture(name + "-" + look.name)
		for _, fault := range tb.faults(look, marked) {
			tb.t.Errorf("%s, %s: %s", name, look.name, fault)
		}
	}
	tb.wear(looks[0])
}

func TestPages_Axe_IsThere(t *testing.T) {
	t.Parallel()
	if axe() == "" {
		need.Missing(t, "axe-core is missing: run make test, which fetches it with npm")
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

func (tb *tab) faults(look look, marked []string) (faults []string) {
	tb.t.Helper()
	if axe := axe(); look.rules != "" && axe != "" {
		if !get[bool](tb, `"axe" in globalThis`) {
			_, err := tb.evaluate(axe + "\n;''")
			tb.must(err)
		}
		faults = append(faults, get[[]string](tb, `axe.run(document, { resultTypes: ["violations"], iframes: false, runOnly: `+look.rules+` }).then(({ violations }) => violations.flatMap((one) =>
			one.nodes.map((node) => one.id + ": " + one.help + ", at " + node.target.flat().join(" ") + " " + node.any.map((why) => why.message).join(" "))))`)...)
		faults = append(faults, get[[]string](tb, faintFields)...)
	}
	faults = append(faults, get[[]string](tb, smallTargets)...)
	if wide := get[float64](tb, tooWide); wide > 0 {
		faults = append(faults, fmt.Sprintf("the page is %v px too wide", wide))
	}
	faults = append(faults, get[[]string](tb, `[...document.querySelectorAll("button:not(.tabs button), svg text:not(.many)")].filter((one) => one.checkVisibility() && (one.matches("button")
		? one.scrollWidth > one.clientWidth : one.getBoundingClientRect().bottom > one.closest("svg").getBoundingClientRect().bottom + 1)).map((one) => "cut off: " + one.textContent)`)...)
	if look.forced {
		for _, name := range marked {
			if by := get[float64](tb, fmt.Sprintf(standsOut, name)); by < 3 {
				faults = append(faults, fmt.Sprintf("%s stands out by %.2f", name, by))
			}
		}
	}
	return faults
}

// smallTargets are those that a finger misses: less than 24 px wide or high, unless inside of a sentence.
const smallTargets = `[...document.querySelectorAll("a, button, input, select, textarea, summary")].filter((one) => one.checkVisibility()).flatMap((one) => {
	const { width, height } = (one.type === "radio" ? one.labels[0] : one).getBoundingClientRect();
	const inSentence = one.matches(":is(p, li, td) a") && getComputedStyle(one).display === "inline" && one.closest("p, li, td").textContent.trim() !== one.textContent.trim();
	return inSentence || Math.min(width, height) >= 24 ? [] : "small target: " + one.outerHTML.slice(0, 100) + " " + width + " x " + height;
})`

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

// axe is axe-core, which finds barriers for people with disabilities, or empty where it is missing.
var axe = sync.OnceValue(func() string {
	if found := must.Have(filepath.Glob("../../bin/axe-core-*/axe.min.js")); len(found) > 0 {
		return string(must.Have(os.ReadFile(found[0])))
	}
	return ""
})

// picture leaves a picture of the whole page in the folder screenshots, if there is one.
func (tb *tab) picture(name string) {
	tb.t.Helper()
	const folder = "../../screenshots"
	if tb.inFirefox() {
		return
	}
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
