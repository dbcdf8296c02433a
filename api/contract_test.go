package api_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/mailgate/mailgate"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is openapi.yaml, to check exchanges against. It notes the answers it has seen.
type contract struct {
	root     any
	compiler *jsonschema.Compiler

	mu   sync.Mutex
	seen map[string]bool // by operation, status and type of problem
}

var theContract = loadContract()

func loadContract() *contract {
	text, err := yaml.YAMLToJSON(mailgate.OpenAPI)
	if err != nil {
		panic(err)
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	c := &contract{root: root, compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("openapi.yaml", root); err != nil {
		panic(err)
	}
	return c
}

// wholeRun reports whether every test was asked for.
func wholeRun() bool {
	for _, name := range []string{"test.run", "test.skip", "test.fuzz", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// place is a part of the document and its JSON pointer.
type place struct {
	pointer string
	value   any
}

func (c *contract) at(pointer string) place {
	p := place{"#", c.root}
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "#/"), "/") {
		p = c.step(p, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	return p
}

// step goes one member down and follows a reference there.
func (c *contract) step(p place, name string) place {
	members, _ := p.value.(map[string]any)
	next := place{p.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), members[name]}
	if members, ok := next.value.(map[string]any); ok {
		if ref, ok := members["$ref"].(string); ok {
			return c.at(ref)
		}
	}
	return next
}

func (c *contract) walk(p place, names ...string) place {
	for _, name := range names {
		p = c.step(p, name)
	}
	return p
}

func (p place) members() map[string]any {
	members, _ := p.value.(map[string]any)
	return members
}

// validate holds a JSON value against the schema at a place.
func (c *contract) validate(schema place, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return c.validateValue(schema, value)
}

func (c *contract) validateValue(schema place, value any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	compiled, err := c.compiler.Compile("openapi.yaml" + schema.pointer)
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// exchange is a request and its answer.
type exchange struct {
	method, path string
	body         []byte
	status       int
	header       http.Header
	answer       []byte
}

// check holds an exchange against the document.
func (c *contract) check(e exchange) error {
	path, operation := c.find(e)
	status := strconv.Itoa(e.status)
	if c.walk(operation, "responses", status).value == nil {
		status = "default"
	}
	if err := c.checkHeaders(e, c.walk(operation, "responses", status, "headers")); err != nil {
		return err
	}
	if operation.value == nil {
		return c.checkElsewhere(e, path)
	}
	if err := c.checkRequest(e, operation); err != nil {
		return err
	}
	return c.checkAnswer(e, c.walk(operation, "responses", status), path+" "+e.method+" "+status)
}

// checkHeaders is for those that every answer has. Only what is documented as such may be
// kept by a cache.
func (c *contract) checkHeaders(e exchange, documented place) error {
	cached := "no-store"
	if documented.members()["Cache-Control"] != nil {
		cached = "public, max-age=3600"
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": cached, "Server": ""} {
		if got := e.header.Get(name); got != want {
			return fmt.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if e.header.Get("X-Request-Id") == "" {
		return fmt.Errorf("there is no X-Request-Id")
	}
	return nil
}

// find returns the operation an exchange belongs to, and its path as documented.
func (c *contract) find(e exchange) (string, place) {
	sent, _, _ := strings.Cut(e.path, "?")
	parts := strings.Split(sent, "/")
	paths := c.at("#/paths")
	for path := range paths.members() {
		documented := strings.Split(path, "/")
		if slices.EqualFunc(documented, parts, func(d, p string) bool {
			return d == p || strings.HasPrefix(d, "{") && p != ""
		}) {
			method := strings.ToLower(e.method)
			if method == "head" {
				method = "get"
			}
			return path, c.walk(paths, path, method)
		}
	}
	return "", place{}
}

// checkElsewhere is for what is not documented: it must be refused as such.
func (c *contract) checkElsewhere(e exchange, path string) error {
	want := map[int]bool{404: path == "", 405: path != "", 204: path != "" && e.method == "OPTIONS", 501: true, 400: true, 431: true, 503: true}
	if !want[e.status] {
		return fmt.Errorf("answered %d, where nothing is documented", e.status)
	}
	if e.status == 204 {
		return nil
	}
	return c.checkAnswer(e, c.at("#/components/responses/Other"), path+" "+e.method+" default")
}

// checkRequest holds that no request outside the document was accepted.
func (c *contract) checkRequest(e exchange, operation place) error {
	schema := c.walk(operation, "requestBody", "content", "application/json", "schema")
	if schema.value == nil || e.status >= 300 || len(e.body) == 0 {
		return nil
	}
	return c.validate(schema, e.body)
}

func (c *contract) checkAnswer(e exchange, response place, key string) error {
	headers := c.walk(response, "headers")
	for name := range headers.members() {
		if e.header.Get(name) == "" && c.walk(headers, name).members()["required"] == true {
			return fmt.Errorf("there is no header %s", name)
		}
	}
	if e.status == http.StatusNotModified {
		return c.note(key, "", place{})
	}
	sent, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	media := c.walk(response, "content", sent)
	if media.value == nil {
		return fmt.Errorf("the type %q is not documented", sent)
	}
	if e.method == "HEAD" {
		return nil
	}
	problem := ""
	if strings.HasSuffix(sent, "json") {
		if err := c.validate(c.walk(media, "schema"), e.answer); err != nil {
			return err
		}
		value, _ := jsonschema.UnmarshalJSON(bytes.NewReader(e.answer))
		problem = typeOf(value)
	}
	return c.note(key, problem, c.walk(media, "examples"))
}

func typeOf(problem any) string {
	members, _ := problem.(map[string]any)
	name, _ := members["type"].(string)
	return name
}

// note keeps account of an answer. A type of problem must have an example.
func (c *contract) note(key, problem string, examples place) error {
	documented := problem == ""
	for name := range examples.members() {
		documented = documented || typeOf(c.walk(examples, name, "value").value) == problem
	}
	if !documented {
		return fmt.Errorf("the problem %s is not documented here", problem)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[key+" "+problem] = true
	return nil
}

// unseen lists the documented answers that never came. Those that any route may give
// need to come from one.
func (c *contract) unseen() (missing []string) {
	for key := range c.documented() {
		path, rest, _ := strings.Cut(key, " default ")
		if !c.seen[key] && (path == key || !c.seenAnywhere(rest)) {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	return missing
}

func (c *contract) seenAnywhere(problem string) bool {
	for key := range c.seen {
		if strings.HasSuffix(key, " default "+problem) {
			return true
		}
	}
	return false
}

// documented are the keys of all answers, with the type of each example.
func (c *contract) documented() map[string]place {
	all := map[string]place{}
	paths := c.at("#/paths")
	for path := range paths.members() {
		for method := range c.step(paths, path).members() {
			responses := c.walk(paths, path, method, "responses")
			for status := range responses.members() {
				content := c.walk(responses, status, "content")
				if content.value == nil {
					all[path+" "+strings.ToUpper(method)+" "+status+" "] = place{}
				}
				for media := range content.members() {
					examples := c.walk(content, media, "examples")
					for name := range examples.members() {
						problem := typeOf(c.walk(examples, name, "value").value)
						all[path+" "+strings.ToUpper(method)+" "+status+" "+problem] = c.walk(content, media)
					}
				}
			}
		}
	}
	return all
}

// Every example is an instance of what it is an example of.
func TestContract_Examples_AreValid(t *testing.T) {
	media := slices.Collect(maps.Values(theContract.documented()))
	paths := theContract.at("#/paths")
	for path := range paths.members() {
		for method := range theContract.step(paths, path).members() {
			media = append(media, theContract.walk(paths, path, method, "requestBody", "content", "application/json"))
		}
	}
	checked := 0
	for _, m := range media {
		examples := theContract.walk(m, "examples")
		for name := range examples.members() {
			checked++
			if err := theContract.validateValue(theContract.walk(m, "schema"), theContract.walk(examples, name, "value").value); err != nil {
				t.Errorf("%s: %s: %v", m.pointer, name, err)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d examples were found", checked)
	}
}

// Of an answer that is one of several the type says which, for clients that are generated.
func TestContract_Discriminators_LeadToTheSchema(t *testing.T) {
	for key, media := range theContract.documented() {
		schema := theContract.walk(media, "schema")
		if schema.members()["oneOf"] == nil {
			continue
		}
		problem := key[strings.LastIndexByte(key, ' ')+1:]
		to, _ := theContract.walk(schema, "discriminator", "mapping").members()[problem].(string)
		examples := theContract.walk(media, "examples")
		for name := range examples.members() {
			example := theContract.walk(examples, name, "value").value
			if typeOf(example) == problem && (to == "" || theContract.validateValue(theContract.at(to), example) != nil) {
				t.Errorf("%s: its type leads to %q", key, to)
			}
		}
	}
}

// A comma in a sentence without quotation marks ends it where it stands within braces: what
// follows is a member without a value.
func TestContract_Values_AreNotCut(t *testing.T) {
	text := must(yaml.YAMLToJSON(mailgate.OpenAPI))(t)
	for _, member := range regexp.MustCompile(`"([^"]*)": ?null`).FindAllSubmatch(text, -1) {
		if name := string(member[1]); name != "rule" && name != "limit" { // of an example
			t.Errorf("%q has no value", name)
		}
	}
}

// The check itself finds what is planted.
func TestContract_Planted_IsFound(t *testing.T) {
	good := http.Header{"X-Content-Type-Options": {"nosniff"}, "Cache-Control": {"no-store"}, "X-Request-Id": {"x"}, "Content-Type": {"application/json"}}
	changed := func(name, value string) http.Header {
		h := good.Clone()
		h.Set(name, value)
		return h
	}
	live := []byte(`{"status":"live"}`)
	tests := []struct {
		name  string
		e     exchange
		sound bool
	}{
		{"sound", exchange{method: "GET", path: "/livez", status: 200, header: good, answer: live}, true},
		{"a field too many", exchange{method: "GET", path: "/livez", status: 200, header: good, answer: []byte(`{"status":"live","x":1}`)}, false},
		{"a field too few", exchange{method: "GET", path: "/livez", status: 200, header: good, answer: []byte(`{}`)}, false},
		{"another type", exchange{method: "GET", path: "/livez", status: 200, header: changed("Content-Type", "text/html"), answer: live}, false},
		{"kept by caches", exchange{method: "GET", path: "/livez", status: 200, header: changed("Cache-Control", ""), answer: live}, false},
		{"says who serves", exchange{method: "GET", path: "/livez", status: 200, header: changed("Server", "fiber"), answer: live}, false},
		{"a header too few", exchange{method: "GET", path: "/mailboxes/a@b.example", status: 200, header: good, answer: live}, false},
		{"an unknown status", exchange{method: "GET", path: "/livez", status: 201, header: good, answer: live}, false},
		{"an unknown path", exchange{method: "GET", path: "/nowhere", status: 200, header: good, answer: live}, false},
	}
	own := loadContract()
	for _, tt := range tests {
		if err := own.check(tt.e); (err == nil) != tt.sound {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// recorder is a transport that checks every exchange against openapi.yaml.
type recorder struct {
	t    testing.TB
	next http.RoundTripper
}

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	// What has no body must not get one of unknown length: it would go out in chunks, after
	// which the server closes the connection.
	if request.Body != nil && request.Body != http.NoBody {
		body, _ = io.ReadAll(request.Body)
		request.Body.Close()
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	journal.notePrivate(request.URL.EscapedPath(), request.Header.Get("Authorization"), body)
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	e := exchange{request.Method, request.URL.EscapedPath(), body, response.StatusCode, response.Header, answer}
	if err := theContract.check(e); err != nil {
		r.t.Errorf("%s %s answered %d, against openapi.yaml: %v\n%s", e.method, e.path, e.status, err, answer)
	}
	return response, nil
}
