package web_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"golang.org/x/net/websocket"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
)

// A firefox speaks WebDriver BiDi with the Firefox that all tests share. Each test has a container
// of its own, with its own cookies and storage.
type firefox struct {
	profile string
	process *exec.Cmd
	socket  *websocket.Conn

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	hears   map[string]func(complaint string) // by the tab
}

type answer struct {
	ID      int
	Type    string
	Result  json.RawMessage
	Message string

	Method string // of an event
	Params struct {
		Level, Text string
		Source      struct{ Context string }
	}
}

// timeout is how long one command may take, with a page that loads.
const timeout = time.Minute

var theAddress = regexp.MustCompile(`WebDriver BiDi listening on (ws://\S+)`)

// startFirefox starts the Firefox that all tests share.
var startFirefox = sync.OnceValue(func() *firefox {
	program, _ := need.Find("firefox-esr")
	f := &firefox{profile: must.Have(os.MkdirTemp("", "mailgate-firefox-")), waiting: map[int]chan answer{}, hears: map[string]func(string){}}
	const origin = "http://127.0.0.1" // of a client; Firefox accepts the named ones only
	f.process = exec.Command(program, "--headless", "--no-remote", "--profile", f.profile, "--remote-debugging-port", "0", "--remote-allow-origins", origin)
	f.process.Env = append(os.Environ(), "HOME="+f.profile)
	lines := bufio.NewScanner(must.Have(f.process.StderrPipe()))
	must.Have(0, f.process.Start())
	stopFirefox = f.stop
	for lines.Scan() {
		if found := theAddress.FindStringSubmatch(lines.Text()); found != nil {
			f.socket = must.Have(websocket.Dial(found[1]+"/session", "", origin))
			go f.listen()
			go func() {
				for lines.Scan() { // else it would block when the pipe is full
				}
			}()
			must.Have(f.call("session.new", map[string]any{"capabilities": map[string]any{}}))
			must.Have(f.call("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}))
			return f
		}
	}
	panic(fmt.Sprintf("Firefox ended before it listened: %v", lines.Err()))
})

var stopFirefox = func() {}

func (f *firefox) stop() {
	f.process.Process.Kill()
	f.process.Wait()
	os.RemoveAll(f.profile)
}

// listen hands answers to those who wait for them.
func (f *firefox) listen() {
	for {
		var got answer
		if err := websocket.JSON.Receive(f.socket, &got); err != nil {
			return // the browser was stopped; who waits is told so by the timeout
		}
		f.mu.Lock()
		waiting, hear := f.waiting[got.ID], f.hears[got.Params.Source.Context]
		delete(f.waiting, got.ID)
		f.mu.Unlock()
		switch {
		case got.Type != "event" && waiting != nil:
			waiting <- got
		case got.Type == "event" && hear != nil && got.Params.Level == "error" && !strings.Contains(got.Params.Text, "/favicon.ico"):
			hear(got.Params.Text)
		}
	}
}

// call sends a command and waits for its result.
func (f *firefox) call(method string, params any) (json.RawMessage, error) {
	replied := make(chan answer, 1)
	f.mu.Lock()
	f.last++
	id := f.last
	f.waiting[id] = replied
	err := websocket.JSON.Send(f.socket, map[string]any{"id": id, "method": method, "params": params})
	f.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	select {
	case got := <-replied:
		if got.Type == "error" {
			return nil, fmt.Errorf("%s: %s", method, got.Message)
		}
		return got.Result, nil
	case <-time.After(timeout):
		return nil, fmt.Errorf("%s: no answer", method)
	}
}

// newFirefoxVisitor is newVisitor in Firefox.
func newFirefoxVisitor(t *testing.T, scripts ...string) *tab {
	t.Helper()
	need.Program(t, "firefox-esr")
	f := startFirefox()
	var made struct{ UserContext, Context string }
	fill := func(method string, params any) {
		t.Helper()
		result, err := f.call(method, params)
		if err := cmp.Or(err, json.Unmarshal(result, &made)); err != nil {
			t.Fatal(err)
		}
	}
	fill("browser.createUserContext", struct{}{})
	container := made.UserContext
	fill("browsingContext.create", map[string]any{"type": "tab", "userContext": container})
	page := &firefoxTab{f, made.Context}
	tb := &tab{t: t, driver: page}
	f.mu.Lock()
	f.hears[page.id] = tb.complain
	f.mu.Unlock()
	for _, script := range scripts {
		fill("script.addPreloadScript", map[string]any{"functionDeclaration": "() => {" + script + "}", "contexts": []string{page.id}})
	}
	tb.checkComplaints()
	t.Cleanup(func() { f.call("browser.removeUserContext", map[string]any{"userContext": container}) })
	return tb
}

// A firefoxTab is the driver of a tab in Firefox.
type firefoxTab struct {
	*firefox
	id string
}

func (p *firefoxTab) visit(url string) error {
	_, err := p.call("browsingContext.navigate", map[string]any{"context": p.id, "url": url, "wait": "complete"})
	return err
}

func (p *firefoxTab) reload() error {
	_, err := p.call("browsingContext.reload", map[string]any{"context": p.id, "wait": "complete"})
	return err
}

func (p *firefoxTab) evaluate(expression string) (string, error) {
	result, err := p.call("script.evaluate", map[string]any{"expression": expression, "target": map[string]any{"context": p.id}, "awaitPromise": true})
	if err != nil {
		return "", err
	}
	var got struct {
		Result struct {
			Value    json.RawMessage
			SharedID string
		}
		ExceptionDetails struct{ Text string }
	}
	if err := json.Unmarshal(result, &got); err != nil {
		return "", err
	}
	if got.ExceptionDetails.Text != "" {
		return "", errors.New(got.ExceptionDetails.Text)
	}
	if got.Result.SharedID != "" {
		return got.Result.SharedID, nil
	}
	var text string
	return text, json.Unmarshal(got.Result.Value, &text)
}

// click moves the mouse to the middle of an element once it is visible, and clicks.
func (p *firefoxTab) click(selector string) error {
	element, err := p.evaluate(fmt.Sprintf(`new Promise((done) => {
		const look = () => {
			const element = document.querySelector(%q);
			if (!element?.checkVisibility()) return requestAnimationFrame(look);
			element.scrollIntoView({ block: "center", behavior: "instant" });
			done(element);
		};
		look();
	})`, selector))
	if err != nil {
		return err
	}
	return p.act("pointer", "mouse", []map[string]any{
		{"type": "pointerMove", "x": 0, "y": 0, "origin": map[string]any{"type": "element", "element": map[string]any{"sharedId": element}}},
		{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0},
	})
}

// firefoxKeys are the names in WebDriver of the driver's keys.
var firefoxKeys = strings.NewReplacer(kb.Enter, "\ue006", kb.Tab, "\ue004", kb.Escape, "\ue00c", kb.Delete, "\ue017",
	kb.ArrowLeft, "\ue012", kb.ArrowUp, "\ue013", kb.ArrowRight, "\ue014", kb.ArrowDown, "\ue015")

func (p *firefoxTab) press(keys string) error {
	actions := []map[string]any{}
	for _, key := range firefoxKeys.Replace(keys) {
		actions = append(actions, map[string]any{"type": "keyDown", "value": string(key)}, map[string]any{"type": "keyUp", "value": string(key)})
	}
	return p.act("key", "keyboard", actions)
}

func (p *firefoxTab) act(kind, id string, actions []map[string]any) error {
	_, err := p.call("input.performActions", map[string]any{"context": p.id, "actions": []any{map[string]any{"type": kind, "id": id, "actions": actions}}})
	return err
}

func (p *firefoxTab) size(width, height int64) error {
	_, err := p.call("browsingContext.setViewport", map[string]any{"context": p.id, "viewport": map[string]any{"width": width, "height": height}})
	return err
}

// visited returns what the browser keeps of the pages that were visited, which it writes to files.
func (f *firefox) visited() string {
	var all strings.Builder
	for _, path := range must.Have(filepath.Glob(filepath.Join(f.profile, "places.sqlite*"))) {
		all.Write(must.Have(os.ReadFile(path)))
	}
	return all.String()
}
