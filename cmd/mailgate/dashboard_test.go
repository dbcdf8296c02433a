package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

var draw = flag.Bool("pictures", false, "keep the picture, for docs/metrics.md")

// shownFor is how long the dashboard watches the node.
const shownFor = 60 * time.Second

type panel struct {
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }
	lines   []line
}

type line struct {
	name   string
	values [][2]float64 // second and value
}

// Each panel of the dashboard shows something of a node in traffic, to which all that it can show happens. The picture
// of it is drawn from what Prometheus answered.
func TestDashboard_EachPanel_ShowsANodeInTraffic(t *testing.T) {
	need.Long(t)
	t.Parallel()
	redis, receiver := redistest.Durable(t), startBackEnd(t)
	faulty := fault.Run(t, fault.Script{})
	s := startSite(t, "rules:\n  - {name: by-domain, by: domain, limit: minute=90/60s}\n  - {name: trial, by: api_key, limit: minute=200/60s, shadow: true}\n",
		besideRedis(t, redis, faulty.URL(), "MAILGATE_REDIS_TIMEOUT=1s", "MAILGATE_SUBMISSION_LISTEN=127.0.0.1:0", "MAILGATE_HOOK_BREVO="+brevoToken,
			"MAILGATE_EVENTS_URL="+receiver.URL, "MAILGATE_EVENTS_SECRET="+eventsSecret+"|"+formerEventsSecret))
	ask := startPrometheus(t, strings.TrimPrefix(s.URL, "http://"))
	began := time.Now()
	for second := range int(shownFor / time.Second) {
		receiver.down.Store(second >= 20 && second < 23)
		switch second {
		case 30:
			faulty.Play(fault.Script{At: fault.RCPT, Kind: fault.Permanent})
		case 33:
			faulty.Play(fault.Script{})
		case 40:
			redis.Kill()
		case 46:
			redis.Restart()
		}
		busyFor(t, s, second)
		time.Sleep(time.Until(began.Add(time.Duration(second+1) * time.Second))) // one second of the picture
	}
	var dashboard struct{ Panels []*panel }
	must.OK(t, json.Unmarshal([]byte(readFile(t, deployed+"grafana.json")), &dashboard))
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			found := ask(target.Expr, target.LegendFormat, began)
			if len(found) == 0 {
				t.Errorf("%s: nothing has %s", p.Title, target.Expr)
			}
			p.lines = append(p.lines, found...)
		}
	}
	if *draw {
		must.OK(t, os.WriteFile("../../docs/images/grafana.svg", []byte(picture(dashboard.Panels)), 0o644))
	}
}

// busyFor does what visitors, operators and providers do in a second.
func busyFor(t *testing.T, s *site, second int) {
	t.Helper()
	operator := newClient(t, s.URL, adminKey)
	for i := range 5 + int(4*math.Sin(float64(second)/6)) {
		email := fmt.Sprintf("visitor-%d-%d@%s.example", second, i, []string{"a", "b", "c"}[i%3])
		must.Get(s.app.ask("POST", "/send-code", bodyFor(email), nil))(t)
		if i%2 == 0 {
			must.Get(s.app.ask("POST", "/send-code", bodyFor(email), nil))(t)
		}
		must.Get(s.app.ask("POST", "/verify-code", fmt.Sprintf(`{"email":%q,"code":"000000"}`, email), nil))(t)
	}
	if second%4 == 0 {
		email := fmt.Sprintf("visitor-%d-0@a.example", second)
		must.Get(operator.ask("POST", "/admin/mailboxes/"+email+"/reset", `{"reason":"asked"}`, nil))(t)
		must.Get(operator.ask("PUT", "/admin/suppressions/"+email, `{"reason":"complaint"}`, nil))(t)
		must.Get(s.app.ask("POST", "/send-code", bodyFor(email), nil))(t)
		must.Get(newClient(t, s.URL, "").ask("POST", "/hooks/brevo", fmt.Sprintf(`{"event":"soft_bounce","email":%q}`, email), http.Header{"Authorization": {"Bearer " + brevoToken}}))(t)
		_ = submit(s.awaitLine(t, "serving", "smtp_address")) // one is sent, the others are denied
	}
}

// startPrometheus watches a node each second, and returns what asks for the lines of an expression.
func startPrometheus(t *testing.T, node string) (ask func(expr, legend string, since time.Time) []line) {
	t.Helper()
	dir, at := t.TempDir(), servertest.Address(t)
	config := servertest.Write(t, filepath.Join(dir, "prometheus.yml"),
		fmt.Sprintf("scrape_configs: [{job_name: mailgate, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: [%q], labels: {instance: node-1}}]}]\n", node))
	servertest.Start(t, exec.Command(need.Program(t, "prometheus"), "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", at))
	prometheus := newClient(t, "http://"+at, "")
	servertest.Eventually(t, "Prometheus", func() bool {
		answer, err := prometheus.ask("GET", "/-/ready", "", nil)
		return err == nil && answer.Status == 200
	})
	return func(expr, legend string, since time.Time) (lines []line) {
		query := strings.NewReplacer("$__rate_interval", "5s", "$instance", ".*").Replace(expr)
		path := fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=1", url.QueryEscape(query), since.Unix(), since.Add(shownFor).Unix())
		var answer struct {
			Data struct {
				Result []struct {
					Metric map[string]string
					Values [][2]any
				}
			}
		}
		must.OK(t, json.Unmarshal([]byte(prometheus.get(t, path).Raw), &answer))
		for _, one := range answer.Data.Result {
			l := line{name: legend}
			for label, value := range one.Metric {
				l.name = strings.ReplaceAll(l.name, "{{"+label+"}}", value)
			}
			for _, v := range one.Values {
				if value, err := strconv.ParseFloat(v[1].(string), 64); err == nil && !math.IsNaN(value) {
					l.values = append(l.values, [2]float64{v[0].(float64) - float64(since.Unix()), value})
				}
			}
			lines = append(lines, l)
		}
		slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
		return lines
	}
}

// The picture has a grid as Grafana's, of 24 columns.
const (
	column, row  = 50, 26
	margin       = 8
	pictureStyle = `<style>
  text { font: 10px system-ui, sans-serif; fill: #5b6573 } .title { font-weight: 600; font-size: 13px; fill: #1c2430 }
  .paper { fill: #f4f5f7 } .panel { fill: #ffffff } .axis { stroke: #e3e7ec } polyline { fill: none; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #9aa5b4 } .title { fill: #e3e8ef } .paper { fill: #14181f } .panel { fill: #1d232c } .axis { stroke: #2f3743 }
  }
</style>`
)

var colours = []string{"#3274d9", "#37872d", "#e0752d", "#c4162a", "#8f3bb8", "#b8860b", "#1f9e9e", "#808080", "#d6699f", "#5f7a00"}

func picture(panels []*panel) string {
	var all strings.Builder
	height := 0
	for _, p := range panels {
		p.draw(&all)
		height = max(height, (p.GridPos.Y+p.GridPos.H)*row+margin)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="The panels of deploy/grafana.json, of a node in traffic">`+
		"\n%s\n"+`<rect width="100%%" height="100%%" class="paper"/>`+"\n%s</svg>\n", 24*column+margin, height, pictureStyle, all.String())
}

func (p *panel) draw(to *strings.Builder) {
	x, y := p.GridPos.X*column+margin, p.GridPos.Y*row+margin
	width, height := p.GridPos.W*column-margin, p.GridPos.H*row-margin
	fmt.Fprintf(to, `<g transform="translate(%d %d)"><rect width="%d" height="%d" rx="3" class="panel"/><text x="10" y="18" class="title">%s</text>`, x, y, width, height, p.Title)
	top := 0.0
	for _, l := range p.lines {
		for _, v := range l.values {
			top = max(top, v[1])
		}
	}
	top = cmp.Or(top, 1)
	const left, above = 48, 30
	right, below := float64(width-10), float64(height-46)
	for i, at := range []float64{above, below} {
		fmt.Fprintf(to, `<path d="M%d %g H%g" class="axis"/><text x="8" y="%g">%s</text>`, left, at, right, at+4, []string{short(top), "0"}[i])
	}
	at, under := 10, height-26
	for i, l := range p.lines {
		colour := colours[i%len(colours)]
		fmt.Fprintf(to, `<polyline stroke="%s" points="`, colour)
		for _, v := range l.values {
			fmt.Fprintf(to, "%.0f,%.0f ", left+v[0]/shownFor.Seconds()*(right-left), below-v[1]/top*(below-above))
		}
		to.WriteString(`"/>`)
		wide := 22 + 6*len(l.name)
		if at > 10 && at+wide > width {
			at, under = 10, under+14
		}
		if under < height {
			fmt.Fprintf(to, `<rect x="%d" y="%d" width="10" height="3" fill="%s"/><text x="%d" y="%d">%s</text>`, at, under-4, colour, at+14, under, l.name)
		}
		at += wide
	}
	to.WriteString("</g>\n")
}

// short writes a figure in few signs.
func short(value float64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}} {
		if value >= unit.of {
			return strconv.FormatFloat(value/unit.of, 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatFloat(value, 'g', 1, 64)
}
