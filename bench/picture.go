package main

import (
	"fmt"
	"strings"
)

// The picture of the attacks: a bar for each defence, as long as the strangers who got an email are many.
const (
	pictureWidth = 720
	labelWidth   = 300
	barWidth     = 340
	barHeight    = 18
	pictureStyle = `<style>
  text { font: 13px system-ui, sans-serif; fill: #1c2430 } .title { font-weight: 600; font-size: 15px } .from { font-weight: 600 }
  .paper { fill: #ffffff } .track { fill: #e9edf2 } .bar { fill: #b3261e } .held { fill: #1a7f4b }
  @media (prefers-color-scheme: dark) {
    text { fill: #e3e8ef } .paper { fill: #14181f } .track { fill: #2a313c } .bar { fill: #f2776d } .held { fill: #4cc38a }
  }
</style>`
)

func drawAttacks(results [][]*result) string {
	var all strings.Builder
	y := 34
	text := func(x, y int, class, words string) {
		fmt.Fprintf(&all, `<text x="%d" y="%d" class="%s">%s</text>`+"\n", x, y, class, strings.ReplaceAll(words, "`", ""))
	}
	text(16, y, "title", fmt.Sprintf("%d requests, one email each to strangers: how many got one", strangers))
	for i, addresses := range attackers {
		y += 36
		from := fmt.Sprintf("from %d visitors", addresses)
		if addresses == 1 {
			from = "from one visitor"
		}
		text(16, y, "from", from)
		for k, r := range results[i] {
			y += barHeight + 8
			mailed := int(r.mailed.Load())
			class := "bar"
			if mailed*20 <= strangers {
				class = "held"
			}
			text(16, y, "", defences[k].name)
			fmt.Fprintf(&all, `<rect x="%d" y="%d" width="%d" height="%d" class="track"/>`+"\n", labelWidth, y-14, barWidth, barHeight)
			fmt.Fprintf(&all, `<rect x="%d" y="%d" width="%d" height="%d" class="%s"/>`+"\n", labelWidth, y-14, max(2, mailed*barWidth/strangers), barHeight, class)
			text(labelWidth+barWidth+10, y, "", fmt.Sprint(mailed))
		}
	}
	y += 34
	fewest := int64(people)
	for _, one := range results {
		for _, r := range one {
			fewest = min(fewest, r.served.Load())
		}
	}
	text(16, y, "", fmt.Sprintf("Of %d people who signed up meanwhile, %d got their code, each time.", people, fewest))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Strangers who got an email in an attack, by the rules in force">`+
		"\n%s\n"+`<rect width="100%%" height="100%%" rx="8" class="paper"/>`+"\n%s</svg>\n", pictureWidth, y+20, pictureWidth, y+20, pictureStyle, all.String())
}
