package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/servertest"
)

// proxies are those whose configuration in deploy/ is tried as it is, but for its addresses and its
// certificate.
var proxies = map[string]struct {
	file    string
	changes []string // with AT for its own address, and DIR for a directory
	args    []string
}{
	"nginx": {"nginx.conf", []string{
		"listen 443 ssl;", "listen AT;", "ssl_certificate /etc/ssl/mailgate.pem;", "", "ssl_certificate_key /etc/ssl/mailgate.key;", "",
	}, []string{"-c", "DIR/main.conf", "-p", "DIR", "-e", "stderr"}},
	"caddy":   {"Caddyfile", []string{"\nmailgate.acme.example {", "\nhttp://AT {"}, []string{"run", "--adapter", "caddyfile", "--config", "DIR/Caddyfile"}},
	"haproxy": {"haproxy.cfg", []string{"bind :443 ssl crt /etc/ssl/mailgate.pem", "bind AT"}, []string{"-db", "-f", "DIR/haproxy.cfg"}},
}

// mainOfNginx is the file that includes the one of deploy/, as Debian's does.
const mainOfNginx = "daemon off; pid DIR/pid; events { worker_connections 4096; }\n" +
	"http { access_log off; client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi; include DIR/nginx.conf; }\n"

// startProxy starts a proxy before nodes, and returns its URL.
func startProxy(t *testing.T, name string, nodes []string) string {
	t.Helper()
	p, dir, at := proxies[name], t.TempDir(), servertest.Address(t)
	path := need.Program(t, name)
	changes := append([]string{"DIR", dir, "AT", at}, p.changes...)
	for i, node := range nodes {
		changes = append(changes, fmt.Sprintf("10.0.0.%d:8080", i+1), node)
	}
	text := readFile(t, "../../deploy/"+p.file)
	for i := 4; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("%s has no %q", p.file, changes[i])
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	own := strings.NewReplacer("DIR", dir, "AT", at)
	servertest.Write(t, filepath.Join(dir, p.file), own.Replace(text))
	servertest.Write(t, filepath.Join(dir, "main.conf"), own.Replace(mainOfNginx))
	cmd := exec.Command(path)
	for _, arg := range p.args {
		cmd.Args = append(cmd.Args, own.Replace(arg))
	}
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	proxy := servertest.Start(t, cmd)
	t.Cleanup(func() { proxy.Stop(t, syscall.SIGTERM) }) // nginx ends its workers
	proxy.AwaitListening(t, at)
	return "http://" + at
}

const (
	proxiedRate   = 1000 // requests a second that are tried
	proxiedAtOnce = 200
)

// burden sends through a proxy until it is told to end, and counts the answers.
type burden struct {
	sent, answers atomic.Int64
	wrong         sync.Map // answers other than 200 and 429, or errors
	end           chan struct{}
	ended         sync.WaitGroup
}

func loadOn(t *testing.T, url string) *burden {
	b := &burden{end: make(chan struct{})}
	app := newClient(t, url, apiKey)
	app.http.Transport.(*http.Transport).MaxIdleConnsPerHost = proxiedAtOnce
	begun := time.Now()
	for range proxiedAtOnce {
		b.ended.Go(func() {
			for {
				n := b.sent.Add(1)
				select {
				case <-b.end:
					return
				case <-time.After(time.Until(begun.Add(time.Duration(n) * time.Second / proxiedRate))):
				}
				answer, err := app.ask("POST", "/send-code", bodyFor(fmt.Sprintf("m%d@example.com", n*7919%20_000)), nil)
				if b.answers.Add(1); err != nil || answer.Status != 200 && answer.Status != 429 {
					b.wrong.Store(n, fmt.Sprint(time.Since(begun), err, answer.Status, answer.Raw))
				}
			}
		})
	}
	return b
}

// Three nodes beside one Redis are restarted one after the other, and no request through a proxy is lost.
func TestProxies_RollingRestart_NoRequestIsLost(t *testing.T) {
	if os.Getenv("MAILGATE_TEST_LONG") == "" {
		t.Skip("it takes minutes; make long runs it")
	}
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			redis, relay := redistest.Durable(t), startRelay(t)
			var nodes []*process
			var environs [][]string
			var addresses []string
			for range 3 {
				addresses = append(addresses, servertest.Address(t))
				environ := besideRedis(t, redis, relay.URL(), "MAILGATE_LISTEN="+addresses[len(addresses)-1], "MAILGATE_TRUSTED_PROXIES=127.0.0.0/8",
					"MAILGATE_DRAIN_DELAY=5s", "MAILGATE_LOG_LEVEL=warn")
				environs = append(environs, environ)
				nodes = append(nodes, startReady(t, environ, addresses[len(addresses)-1]))
			}
			load := loadOn(t, startProxy(t, name, addresses))
			begun := time.Now()
			for i, node := range nodes {
				before := load.answers.Load()
				servertest.Eventually(t, "a second's requests", func() bool { return load.answers.Load() > before+proxiedRate/2 })
				if status := node.Stop(t, syscall.SIGTERM); status != exitOK {
					t.Errorf("node %d exits with %d", i, status)
				}
				startReady(t, environs[i], addresses[i])
				before = load.answers.Load()
				servertest.Eventually(t, "the requests of a health check", func() bool { return load.answers.Load() > before+2*proxiedRate })
			}
			close(load.end)
			load.ended.Wait()
			t.Logf("%d requests, %d a second", load.answers.Load(), load.answers.Load()*int64(time.Second)/int64(time.Since(begun)))
			lost := 0
			load.wrong.Range(func(_, what any) bool {
				if lost++; lost <= 5 {
					t.Error(what)
				}
				return true
			})
			if lost > 0 {
				t.Errorf("%d requests were lost", lost)
			}
		})
	}
}

// startReady starts a node at an address, and waits until it is ready.
func startReady(t *testing.T, environ []string, address string) *process {
	t.Helper()
	p := launch(t, nil, environ, "serve")
	p.URL = "http://" + address
	c := newClient(t, p.URL, "")
	servertest.Eventually(t, "a ready node", func() bool {
		answer, err := c.ask("GET", "/readyz", "", nil)
		return err == nil && answer.Status == 200
	})
	return p
}

// What back ends and visitors ask for is passed on; what is for operators and monitoring stays inside.
func TestProxies_EachPath_PassesOrStaysInside(t *testing.T) {
	need.Long(t)
	t.Parallel()
	var contract struct {
		Paths map[string]map[string]struct{ Tags []string }
	}
	if err := yaml.Unmarshal(mailgate.OpenAPI, &contract); err != nil {
		t.Fatal(err)
	}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(node.Close)
	address := strings.TrimPrefix(node.URL, "http://")
	for name := range proxies {
		c := newClient(t, startProxy(t, name, []string{address, address, address}), "")
		for path, methods := range contract.Paths {
			for method, operation := range methods {
				inside := strings.HasPrefix(path, "/admin") || slices.Contains(operation.Tags, "Running")
				filled := regexp.MustCompile(`{\w+}`).ReplaceAllString(strings.ReplaceAll(path, "{email}", "alice%40example.com"), "x")
				answer, err := c.ask(strings.ToUpper(method), filled, "", nil)
				if err != nil || (answer.Status == http.StatusNotFound) != inside || !inside && answer.Status != http.StatusNoContent {
					t.Errorf("%s: %s %s: %d %v, inside: %v", name, method, filled, answer.Status, err, inside)
				}
			}
		}
	}
}
