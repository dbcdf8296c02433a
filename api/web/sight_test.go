package web_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/mailgate/mailgate/internal/need"
)

// A look is a way to look at a page.
type look struct {
	name, scheme  string
	width, height int64
	rules         string // of axe-core: all, those of colours, or none
	spared        bool   // under -short
}

// looks are the ways in which every state of a page is looked at. In the dark only colours
// are others.
var looks = []look{
	{"phone", "light", 390, 844, `{ type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }`, false},
	{"phone-dark", "dark", 390, 844, "", true},
	{"dark", "dark", 1280, 900, `{ type: "rule", values: ["color-contrast"] }`, false},
	{"light", "light", 1280, 900, `{ type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }`, true},
}

// axe finds what keeps people out of a page.
func axe(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("../../bin/axe-core-*/axe.min.js")
	if err != nil || len(found) != 1 {
		need.Missing(t, "axe-core is missing: run make test, which fetches it with npm")
	}
	return string(must(os.ReadFile(found[0]))(t))
}

// A finding is a rule that a page breaks.
type finding struct {
	ID, Impact, Help string
	Places           []string
}

// An inspector looks at the states of pages in every light.
type inspector struct {
	*tab
	axe string
}

// inspect fails the test for whatever keeps people out of the page as it is, be it in the
// dark or on a phone, and for what does not fit the width. On a page that was inspected
// before it may be told which part has changed.
func (in inspector) inspect(state string, part ...string) {
	in.t.Helper()
	for _, look := range looks {
		if testing.Short() && look.spared {
			continue
		}
		in.wear(look)
		name := state + "-" + look.name
		in.picture(name)
		for _, found := range in.findings(look, part) {
			in.t.Errorf("%s: %s, %s: %s, at\n  %s", name, found.Impact, found.ID, found.Help, strings.Join(found.Places, "\n  "))
		}
		for _, field := range get[[]string](in.tab, faintFields) {
			in.t.Errorf("%s: %s", name, field)
		}
		if wide := get[float64](in.tab, tooWide); wide > 0 {
			in.t.Errorf("%s: the page is %v px too wide", name, wide)
		}
	}
}

// tooWide is by how many px a page is wider than its window. A phone shows all of such a page,
// smaller, so that innerWidth does not tell.
const tooWide = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

// contrasts lets a script say by how much one colour stands out from another, from 1 to 21.
const contrasts = `
	const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
	const light = (colour) => parts(colour).slice(0, 3).map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const contrast = (one, other) => {
		const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
		return (high + 0.05) / (low + 0.05);
	};`

// faintFields are those whose edge or whose example does not stand out, at which axe-core does
// not look: the edge has to by 3 to 1, the text by 4.5. A field that has the focus has an outline.
const faintFields = `(() => {` + contrasts + `
	const ground = (element) => {
		const colour = getComputedStyle(element).backgroundColor;
		return parts(colour)[3] === 0 && element.parentElement ? ground(element.parentElement) : colour;
	};
	const faint = [];
	for (const field of document.querySelectorAll("input:not([type=radio], [type=checkbox]), textarea, select")) {
		if (!field.checkVisibility() || field === document.activeElement) continue;
		const edge = getComputedStyle(field).borderTopColor;
		const stands = Math.min(contrast(edge, ground(field)), contrast(edge, ground(field.parentElement)));
		if (stands < 3) faint.push("the edge of " + field.outerHTML + " stands out by " + stands.toFixed(2));
		const { color, opacity } = getComputedStyle(field, "::placeholder");
		const mixed = parts(color).slice(0, 3).map((c, i) => c * opacity + parts(ground(field))[i] * (1 - opacity));
		const example = contrast(mixed.join(), ground(field));
		if (field.placeholder && example < 4.5) faint.push("the example in " + field.outerHTML + " stands out by " + example.toFixed(2));
	}
	return faint;
})()`

// wear lets the tab be looked at in this way.
func (in inspector) wear(look look) {
	in.t.Helper()
	call(in.tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: look.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	call(in.tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: look.width, Height: look.height, DeviceScaleFactor: 1, Mobile: look.width < 600,
	})
	in.drawn() // so is what follows the size
}

func (in inspector) findings(look look, part []string) []finding {
	in.t.Helper()
	if look.rules == "" {
		return nil
	}
	if !get[bool](in.tab, `"axe" in globalThis`) {
		in.do(chromedp.Evaluate[chromedp.Void](in.axe))
	}
	where := "document"
	if len(part) > 0 {
		where = fmt.Sprintf("%q", part[0])
	}
	ctx, stop := context.WithTimeout(in.ctx, 4*patience) // it reads every element, and the machine may be busy
	defer stop()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]finding](`axe.run(`+where+`, { resultTypes: ["violations"], iframes: false, runOnly: `+look.rules+` }).then(({ violations }) => violations.map(one => ({
  ID: one.id, Impact: one.impact, Help: one.help, Places: one.nodes.map(node => node.target.flat().join(" ") + "  " + node.any.map(why => why.message).join(" ")),
})))`, chromedp.EvalAwaitPromise))
	return must(found, err)(in.t)
}

// picture leaves the whole page, as it is seen, in the folder screenshots, if there is one.
func (in inspector) picture(name string) {
	in.t.Helper()
	const folder = "../../screenshots"
	if _, err := os.Stat(folder); err != nil {
		return
	}
	size := get[[]float64](in.tab, `[innerWidth, Math.min(document.documentElement.scrollHeight, 6000)]`)
	beyond := true
	shot := call(in.tab, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &beyond, Clip: &page.Viewport{Width: size[0], Height: size[1], Scale: 1},
	})
	if err := os.WriteFile(fmt.Sprintf("%s/%s.png", folder, name), shot.Data, 0o644); err != nil {
		in.t.Fatal(err)
	}
}
