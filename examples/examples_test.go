// Package examples_test runs the examples as their READMEs say, against a mailgate.
package examples_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/client"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/message"
)

var theServer = sync.OnceValue(func() *apitest.Server { return apitest.Start(nil) })

// The back ends send, pass the wait on to the page, and check the code.
func TestBackEnds_SignUp_SentRefusedVerified(t *testing.T) {
	need.Long(t)
	for name, command := range map[string]string{
		"go": "./example", "python": "python3 examples/python/server.py", "php": "php -S LISTEN examples/php/index.php",
		"express": "node examples/express/server.js",
	} {
		t.Run(name, func(t *testing.T) {
			root := clone(t)
			switch name {
			case "go":
				run(t, root, "go", "build", "-o", "example", "./examples/go") // go run would outlive its end
			case "express":
				install(t, root, "examples/express")
			default:
				need.Program(t, strings.Fields(command)[0])
			}
			s, addr := theServer(), servertest.Address(t)
			args := strings.Fields(strings.Replace(command, "LISTEN", addr, 1))
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Dir, cmd.Env = root, append(os.Environ(), "LISTEN="+addr, "MAILGATE_URL="+s.URL, "MAILGATE_KEY="+apitest.APIKey)
			start(t, cmd, addr)

			email := name + "@example.com"
			form := url.Values{"email": {email}}
			for _, want := range []int{200, 429} {
				status, text := post(t, "http://"+addr+"/send", form)
				var answer struct {
					Wait      int64  `json:"wait_ms"`
					Countdown string `json:"countdown"`
				}
				if err := json.Unmarshal([]byte(text), &answer); status != want || err != nil || answer.Wait <= 0 || answer.Countdown == "" {
					t.Errorf("status %d, want %d: %s", status, want, text)
				}
			}
			if status, text := post(t, "http://"+addr+"/send", url.Values{"email": {"alice@"}}); status != 422 {
				t.Errorf("an invalid address: status %d: %s", status, text)
			}
			form.Set("code", s.Code(email))
			for _, want := range []int{204, 422} {
				if status, text := post(t, "http://"+addr+"/verify", form); status != want {
					t.Errorf("verify: status %d, want %d: %s", status, want, text)
				}
			}
			if page := must.Get(http.Get("http://" + addr + "/"))(t); page.StatusCode != 200 {
				t.Errorf("the page: status %d", page.StatusCode)
			}
		})
	}
}

// Django sends its own code through the door of mailgate dev, tells the visitor the wait, and checks the code.
func TestDjango_SignUp_SentRefusedVerified(t *testing.T) {
	need.Long(t)
	const python = "/usr/bin/python3" // that of Debian, with its Django
	if err := exec.Command(python, "-c", "import django").Run(); err != nil {
		need.Missing(t, "Django is missing: make long installs it")
	}
	root, web, door, addr := clone(t), servertest.Address(t), servertest.Address(t), servertest.Address(t)
	run(t, root, "go", "build", "-o", "mailgate", "./cmd/mailgate")
	dev := exec.CommandContext(t.Context(), "./mailgate", "dev", "--keys", "--listen", web, "--submission-listen", door)
	dev.Dir = root
	log := start(t, dev, door)
	key := regexp.MustCompile(`API key +(\S+)`)
	servertest.Eventually(t, "the API key", func() bool { return key.MatchString(log.String()) })
	site := exec.CommandContext(t.Context(), python, "examples/django/signup.py")
	site.Dir, site.Env = root, append(os.Environ(), "LISTEN="+addr, "SMTP="+door, "MAILGATE_KEY="+key.FindStringSubmatch(log.String())[1])
	start(t, site, addr)

	http := &http.Client{Jar: must.Get(cookiejar.New(nil))(t)} // one visitor
	post := func(path, field, value string, want int, words string) {
		t.Helper()
		response := must.Get(http.PostForm("http://"+addr+path, url.Values{field: {value}}))(t)
		defer response.Body.Close()
		if text := must.Get(io.ReadAll(response.Body))(t); response.StatusCode != want || !strings.Contains(string(text), words) {
			t.Errorf("%s %s: status %d, want %d: %s", path, value, response.StatusCode, want, text)
		}
	}
	code := func() string {
		response := must.Get(http.Get("http://" + web + "/demo/mails/1"))(t)
		defer response.Body.Close()
		return regexp.MustCompile(`Your code is ([0-9]{6})`).FindStringSubmatch(string(must.Get(io.ReadAll(response.Body))(t)))[1]
	}
	post("/send", "email", "alice@", 422, "not an email address")
	post("/send", "email", "alice@example.com", 200, "Sent.")
	post("/send", "email", "alice@example.com", 429, "The next email can be sent in 60 s.")
	post("/verify", "code", code(), 204, "")
	post("/verify", "code", code(), 422, "")
}

// Logto's own connector sends, and its error has the wait.
func TestLogto_Connector_SentAndRefused(t *testing.T) {
	need.Long(t)
	need.Program(t, "npm")
	const authorization = "Bearer of-the-connector-1"
	root := clone(t)
	s := apitest.Start(func(_ *apitest.Server, o *apitest.Options) {
		from := must.Get(message.ParseSender("Acme <no-reply@acme.example>"))(t)
		o.Live.Composer = must.Get(message.NewComposer(from, must.Get(message.LoadTemplates(nil, "en", "logto"))(t)))(t)
		o.Hooks = []hooks.Hook{hooks.NewLogto(authorization, "")}
	})
	t.Cleanup(func() { s.Close() })
	run(t, filepath.Join(root, "examples/logto"), "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	for _, test := range []struct{ authorization, kind, want string }{
		{authorization, "SignIn", "sent\n"},
		{authorization, "SignIn", "The minute limit of this mailbox is reached. Try again in "},
		{authorization, "Newsletter", `type: no email of the kind "Newsletter" is known` + "\n"},
		{"Bearer another", "SignIn", "Valid key required"},
	} {
		cmd := exec.CommandContext(t.Context(), "node", "send.js", "logto@example.com", test.kind)
		cmd.Dir, cmd.Env = filepath.Join(root, "examples/logto"), append(os.Environ(), "MAILGATE_URL="+s.URL, "HOOK_SECRET="+test.authorization)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%v: %s, want %s", err, out, test.want)
		}
	}
	if mails := s.Mails("logto@example.com"); len(mails) != 1 || !strings.Contains(mails[0], "123456") {
		t.Errorf("the emails are %q", mails)
	}
}

// Better Auth makes the code that arrives, and passes a limit on.
func TestBetterAuth_SignIn_CodeArrivesAndLimitIsPassedOn(t *testing.T) {
	need.Long(t)
	need.Program(t, "npm")
	root, s := clone(t), theServer()
	install(t, root, "examples/better-auth")
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", `
import { auth } from "./auth.js";
const body = { email: "better@example.com", type: "sign-in" };
await auth.api.sendVerificationOTP({ body });
await auth.api.sendVerificationOTP({ body }).catch((error) => console.log(error.status, error.body.countdown.limit));
`)
	cmd.Dir = filepath.Join(root, "examples/better-auth")
	cmd.Env = append(os.Environ(), "MAILGATE_URL="+s.URL, "MAILGATE_KEY="+apitest.APIKey, "BETTER_AUTH_SECRET=9f86d081884c7d659a2feaa0c55ad015")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "TOO_MANY_REQUESTS minute") || len(s.Mails("better@example.com")) != 1 {
		t.Errorf("%v, %d emails\n%s", err, len(s.Mails("better@example.com")), out)
	}
}

// The pages hold their button after a send. Those of React and Vue are built by Vite with the npm package.
func TestPages_Sent_HoldTheButton(t *testing.T) {
	need.Long(t)
	for _, name := range []string{"html", "react", "vue"} {
		t.Run(name, func(t *testing.T) {
			root, s, dir := clone(t), theServer(), "examples/"+name
			pages := filepath.Join(root, dir)
			replace(t, pages, "http://127.0.0.1:8080", s.URL)
			if name != "html" {
				install(t, root, dir)
				run(t, pages, "npm", "run", "build")
				pages = filepath.Join(pages, "dist")
			}
			var posts atomic.Int32
			handler := backEnd(t, s, pages)
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					posts.Add(1)
				}
				handler.ServeHTTP(w, r)
			}))
			t.Cleanup(site.Close)
			ctx := newBrowser(t)
			held := chromedp.CSS(`#send[aria-disabled="true"]`)
			err := chromedp.Do(ctx, chromedp.Navigate(site.URL), chromedp.SendKeys(chromedp.CSS("input"), name+".page@example.com"))
			must.OK(t, err)
			must.Get(chromedp.Run(ctx, chromedp.Evaluate[any](`{ const send = document.querySelector("#send"); send.click(); send.click() }`)))(t) // a double click
			err = chromedp.Do(ctx, chromedp.WaitVisible(held))
			text, evaluated := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("mailgate-countdown[waiting]").shadowRoot.textContent`))
			if err != nil || evaluated != nil || !strings.Contains(text, "One email a minute.") {
				t.Errorf("%v, %v: the element says %q", err, evaluated, text)
			}
			said := must.Get(chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("p").textContent + getComputedStyle(document.querySelector("#send")).opacity`)))(t)
			if n, asked := len(s.Mails(name+".page@example.com")), posts.Load(); n != 1 || asked != 1 || said != "Look into your mailbox.0.5" {
				t.Errorf("%d emails, %d requests, and the page says %q", n, asked, said)
			}
		})
	}
}

// backEnd serves the pages of a folder, and POST /send as the example in Go does.
func backEnd(t *testing.T, s *apitest.Server, pages string) http.Handler {
	gate, mux := must.Get(client.New(s.URL, apitest.APIKey))(t), http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir(pages)))
	mux.HandleFunc("POST /send", func(w http.ResponseWriter, r *http.Request) {
		sent, err := gate.Send(r.Context(), client.Mail{Email: r.FormValue("email")})
		if err != nil {
			t.Error(err)
		}
		w.Write(sent.ForCountdown())
	})
	return mux
}

func newBrowser(t *testing.T) context.Context {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(need.Program(t, "chromium-headless-shell")))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's own does not work for root
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// clone returns a copy of the repository without what was installed or built.
func clone(t *testing.T) string {
	root := t.TempDir()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	list.Dir = ".."
	for _, file := range strings.Fields(string(must.Get(list.Output())(t))) {
		text, err := os.ReadFile(filepath.Join("..", file))
		if errors.Is(err, os.ErrNotExist) || err != nil && !strings.Contains(file, "/") {
			continue // deleted, or a link to a folder
		}
		to := filepath.Join(root, file)
		must.OK(t, err)
		must.OK(t, os.MkdirAll(filepath.Dir(to), 0o700))
		must.OK(t, os.WriteFile(to, text, 0o600))
	}
	return root
}

// install packs the npm package and installs what an example needs.
func install(t *testing.T, root, dir string) {
	need.Program(t, "npm")
	for _, dir := range []string{"client/ts", dir} {
		run(t, filepath.Join(root, dir), "npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
		if dir == "client/ts" {
			run(t, filepath.Join(root, dir), "npm", "pack")
		}
	}
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// replace changes a text in all files of a folder.
func replace(t *testing.T, dir, from, to string) {
	must.OK(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600)
	}))
}

// start starts a program that will listen, and waits until it does.
func start(t *testing.T, cmd *exec.Cmd, addr string) *servertest.Log {
	t.Helper()
	p := servertest.Start(t, cmd)
	p.AwaitListening(t, addr)
	return p.Log
}

func post(t *testing.T, url string, form url.Values) (int, string) {
	t.Helper()
	response := must.Get(http.PostForm(url, form))(t)
	defer response.Body.Close()
	return response.StatusCode, string(must.Get(io.ReadAll(response.Body))(t))
}
