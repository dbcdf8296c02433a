package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Where the visitor's own few colours are forced on every page, backgrounds and shadows are
// gone. What they tell is told by lines as well.
func TestInForcedColors(t *testing.T) {
	browser := openBrowser(t)
	for _, scheme := range []string{"light", "dark"} {
		for name, test := range map[string]func(f forced, d *desk){
			"sign up": signUpInForcedColors, "inbox": inboxInForcedColors, "console": consoleInForcedColors, "docs": docsInForcedColors,
		} {
			t.Run(name+", "+scheme, func(t *testing.T) {
				d := newDesk(t, nil)
				v := newVisitor(t, browser)
				call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
					{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: scheme},
				}})
				call(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 900, DeviceScaleFactor: 1})
				test(forced{inspector{tab: v}, scheme}, d)
			})
		}
	}
}

// A forced is a page in forced colours.
type forced struct {
	inspector
	scheme string
}

func signUpInForcedColors(f forced, d *desk) {
	f.asksFor(d, "alice@example.com")
	f.reads("toast", "New email")
	f.picture("forced-signup-" + f.scheme)
	for _, edged := range []string{".tiers i", ".pill", ".operator", ".toast", ".badge"} {
		f.hasEdge(edged)
	}
	f.differ(".tiers i.used", ".tiers i:not(.used)")
	f.differ("nav a[aria-current]", "nav a:not([aria-current])")
	f.do(chromedp.Click(chromedp.CSS("#other")))
	f.types("email", "alice+again@example.com")
	f.reads("status", "429 not yet")
	f.forgive()
	f.picture("forced-denied-" + f.scheme)
	f.differ(".tiers .full i.used", ".tiers i:not(.used)")
	f.isDrawn("#ring", "stroke", ".clock")
}

func inboxInForcedColors(f forced, d *desk) {
	d.ask(`{"email":"alice@example.com"}`)
	f.do(chromedp.Navigate(d.URL + "/inbox"))
	f.until("the mail is open", func() bool { return get[bool](f.tab, `!!document.querySelector("#mails [aria-current]")`) })
	d.ask(`{"email":"bob@example.com"}`)
	f.until("another has arrived", func() bool { return get[bool](f.tab, `!!document.querySelector("#mails .new")`) })
	f.picture("forced-inbox-" + f.scheme)
	f.hasEdge(".badge")
	f.isDrawn("#mails .new strong::before", "background-color", "#mails button")
	f.differ("#mails [aria-current]", "#mails button:not([aria-current])")
	f.differ(".tabs [aria-selected=true]", ".tabs [aria-selected=false]")
}

func consoleInForcedColors(f forced, d *desk) {
	d.sent("carol@example.com", 20*time.Hour, 40*time.Minute, 20*time.Second)
	f.opens(d)
	f.types("email", "carol@example.com")
	f.reads("found-title", "carol@example.com")
	f.picture("forced-console-" + f.scheme)
	f.hasEdge("#found-pill")
	f.hasEdge("#reset")
	f.isDrawn(".lanes .band", "stroke", "#found")
	f.isDrawn(".lanes .edge", "stroke", "#found")
	f.isDrawn(".lanes .send", "fill", ".lanes .band")
}

func docsInForcedColors(f forced, d *desk) {
	f.do(chromedp.Navigate(d.URL + "/docs"))
	f.run(`document.querySelector(".trial").open = true`)
	f.picture("forced-docs-" + f.scheme)
	f.hasEdge(".try button")
	f.hasEdge(".try input")
}

// forcedColors reads what is drawn of an element: the colour of its ground, and of its edge.
const forcedColors = contrasts + `
	const find = (name) => {
		const [path, pseudo] = name.split("::");
		const element = document.querySelector(path);
		return { element, style: getComputedStyle(element, pseudo && "::" + pseudo) };
	};
	const solid = (colour) => !/^rgba\(.*, 0\)$/.test(colour) && colour !== "none";
	const ground = (element) => {
		if (element.matches("svg rect")) return getComputedStyle(element).fill;
		const colour = getComputedStyle(element).backgroundColor;
		return solid(colour) || !element.parentElement ? colour : ground(element.parentElement);
	};
	const edge = ({ style }) => (style.borderTopStyle === "none" || parseFloat(style.borderTopWidth) === 0 ? "none" : style.borderTopColor);
`

// hasEdge fails the test where nothing tells an element from what is around it.
func (f forced) hasEdge(name string) {
	f.t.Helper()
	if !get[bool](f.tab, fmt.Sprintf(`(() => {%s
		const it = find(%q);
		const around = ground(it.element.parentElement);
		return edge(it) !== "none" && contrast(edge(it), around) >= 3;
	})()`, forcedColors, name)) {
		f.t.Errorf("%s has no edge", name)
	}
}

// differ fails the test where one looks like another.
func (f forced) differ(one, other string) {
	f.t.Helper()
	looks := get[[]string](f.tab, fmt.Sprintf(`(() => {%s
		return [find(%q), find(%q)].map((it) => [ground(it.element), edge(it), it.style.textDecorationLine].join(" "));
	})()`, forcedColors, one, other))
	if looks[0] == looks[1] {
		f.t.Errorf("%s looks like %s: %s", one, other, looks[0])
	}
}

// isDrawn fails the test where a shape does not stand out from what it is on.
func (f forced) isDrawn(shape, by, on string) {
	f.t.Helper()
	if stands := get[float64](f.tab, fmt.Sprintf(`(() => {%s
		return contrast(find(%q).style[%q], ground(find(%q).element));
	})()`, forcedColors, shape, by, on)); stands < 3 {
		f.t.Errorf("%s stands out from %s by %.2f", shape, on, stands)
	}
}
