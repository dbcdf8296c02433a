package web_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle/rules"
)

// guide starts the program of docs/getting-started.md, with its page, on a server. It returns the page's URL.
func guide(t *testing.T, s *server) string {
	t.Helper()
	dir, address := t.TempDir(), servertest.Address(t)
	text := strings.NewReplacer("http://127.0.0.1:8080", s.URL, "127.0.0.1:3000", address).Replace(string(must.Have(os.ReadFile("../../docs/getting-started.md"))))
	for name, language := range map[string]string{"main.go": "go", "page.html": "html"} {
		block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```").FindStringSubmatch(text)
		servertest.Write(t, filepath.Join(dir, "signup", name), block[1])
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-o", program, filepath.Join(dir, "signup", "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MAILGATE_KEY="+apitest.APIKey)
	servertest.Start(t, cmd).AwaitListening(t, address)
	return "http://" + address
}

// The page and the program of the guide, as they are there: the button waits, also after a reload, and the
// code is checked.
func TestGuide_SignUp_WaitsAndChecksTheCode(t *testing.T) {
	s := newServer(t, nil)
	page := sync.OnceValue(func() string { return guide(t, s) })
	inEachBrowser(t, func(t *testing.T, newVisitor opener) {
		v := newVisitor(t)
		email := strings.ToLower(filepath.Base(t.Name())) + "@example.com"
		v.visit(page())
		held := `send.ariaDisabled === "true" && document.querySelector("mailgate-countdown").shadowRoot.textContent.includes("One email a minute.")`
		v.size(390, 844)
		v.enters("email", email)
		v.reads("note", "Check your email.")
		v.isTrue(held)
		v.enters("code", "000000")
		v.reads("note", "That code is not valid.")
		v.enters("code", s.Code(email))
		v.reads("note", "Welcome.")
		v.is(tooWide, "0")
		v.reload()
		v.types("email", email)
		v.press(kb.Tab)
		v.isTrue(held)
	})
}

// The page and the program of the guide pass a challenge on, and the send that it was for is made.
func TestGuide_Challenge_IsSolvedAndSent(t *testing.T) {
	t.Parallel()
	s := newServerThatAsks(t, rules.ByAll)
	s.sendCode("bob@example.com")
	v := newVisitor(t)
	v.visit(guide(t, s))
	v.enters("email", "alice@example.com")
	v.reads("note", "Check your email.")
	if n := len(s.Mails("alice@example.com")); n != 1 {
		t.Errorf("%d emails were sent", n)
	}
}
