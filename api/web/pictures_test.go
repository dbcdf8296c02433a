package web_test

import (
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
)

var draw = flag.Bool("pictures", false, "keep the pictures, for the README")

// The pictures of the README are drawn from the real pages, light and dark.
func TestReadme_Pictures_Drawn(t *testing.T) {
	dir := t.TempDir()
	if *draw {
		dir = "../../docs/images"
	}
	s, v := newServer(t, nil), newVisitor(t, timeMachine)
	v.size(1100, 566)
	v.asksFor(s, "alice@example.com")
	v.reads("toast", "New email")
	s.pass(v, 18_000)
	v.run(`(toast.hidden = true, document.querySelector("#code").blur())`)
	v.draw(dir + "/signup")

	s, v = newServer(t, nil), newVisitor(t)
	for minute := 55; minute >= 0; minute-- {
		s.Ahead.Store(-int64(minute) * 60_000)
		if minute == 48 || minute == 21 {
			s.sendCode("alice@example.com")
			s.post("/verify-code", fmt.Sprintf(`{"email":"alice@example.com","code":%q}`, s.wrongCode("alice@example.com")))
		}
		for i := range 6 + int(4*math.Sin(float64(minute)/7)) + minute*13%3 {
			email := fmt.Sprintf("visitor-%d-%d@example.com", minute, i)
			s.sendCode(email)
			if i > 5 || (minute+i)%7 == 0 {
				s.sendCode(email)
			}
		}
	}
	s.sent("alice@example.com", 15*time.Hour, 11*time.Hour, 150*time.Minute)
	s.Ahead.Store(-25_000)
	s.sendCode("alice@example.com")
	s.Ahead.Store(-9000)
	s.sendCode("alice@example.com")
	s.Ahead.Store(0)
	v.size(1100, 862)
	v.signsIn(s)
	v.looksUp("alice@example.com")
	v.run("document.activeElement.blur()")
	v.reads("numbers", "Sent")
	v.draw(dir + "/console")
}

// draw writes the window in both colour schemes.
func (tb *tab) draw(path string) {
	tb.t.Helper()
	size := get[[]float64](tb, "[innerWidth, innerHeight]")
	for _, scheme := range []string{"light", "dark"} {
		tb.wear(look{width: int64(size[0]), height: int64(size[1]), media: scheme})
		quality := int64(82)
		tb.save(path+"-"+scheme+".webp", page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatWebp, Quality: &quality, Clip: &page.Viewport{Width: size[0], Height: size[1], Scale: 1.5},
		})
	}
}
