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
	"github.com/mailgate/mailgate/internal/must"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is openapi.yaml, to check exchanges against. It notes the answers it has seen.
type contract struct {
	doc      node
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
	allowNull(root)
	c := &contract{doc: node{"#", resolved(root, root)}, compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	closeSchemas(c.doc.at("paths").value, false)
	closeSchemas(c.doc.at("components", "responses").value, false)
	if err := c.compiler.AddResource("openapi.yaml", c.doc.value); err != nil {
		panic(err)
	}
	return c
}

// allowNull makes JSON Schema of what OpenAPI 3.0 says in its own way.
func allowNull(value any) {
	switch value := value.(type) {
	case map[string]any:
		if value["nullable"] == true {
			value["type"] = []any{value["type"], "null"}
		}
		for _, member := range value {
			allowNull(member)
		}
	case []any:
		for _, member := range value {
			allowNull(member)
		}
	}
}

// resolved is a value with what its references refer to in their node.
func resolved(root, value any) any {
	switch value := value.(type) {
	case map[string]any:
		all := map[string]any{}
		if ref, ok := value["$ref"].(string); ok {
			target := node{"#", root}.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			maps.Copy(all, resolved(root, target.value).(map[string]any))
		}
		for name, member := range value {
			if name != "$ref" {
				all[name] = resolved(root, member)
			}
		}
		return all
	case []any:
		all := make([]any, len(value))
		for i, member := range value {
			all[i] = resolved(root, member)
		}
		return all
	}
	return value
}

// closeSchemas refuses members that are not documented, which a client must expect of a later version.
func closeSchemas(value any, isPart bool) {
	switch value := value.(type) {
	case map[string]any:
		if (value["properties"] != nil || value["allOf"] != nil) && !isPart {
			value["unevaluatedProperties"] = false
		}
		for name, member := range value {
			closeSchemas(member, name == "allOf")
		}
	case []any:
		for _, member := range value {
			closeSchemas(member, isPart)
		}
	}
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

// node is a part of the document and its JSON pointer.
type node struct {
	pointer string
	value   any
}

// at goes down by these names. The value is nil where there is none.
func (n node) at(names ...string) node {
	for _, name := range names {
		n = node{n.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), n.members()[name]}
	}
	return n
}

func (n node) members() map[string]any {
	members, _ := n.value.(map[string]any)
	return members
}

// validate holds a JSON value against the schema at a node.
func (c *contract) validate(schema node, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return c.validateValue(schema, value)
}

func (c *contract) validateValue(schema node, value any) error {
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
	if operation.at("responses", status).value == nil {
		status = "default"
	}
	if err := c.checkHeaders(e, operation.at("responses", status, "headers")); err != nil {
		return err
	}
	if operation.value == nil {
		return c.checkElsewhere(e, path)
	}
	if err := c.checkRequest(e, operation); err != nil {
		return err
	}
	return c.checkAnswer(e, operation.at("responses", status), path+" "+e.method+" "+status)
}

// checkHeaders is for those that every answer has. Only what is documented as such may be
// kept by a cache.
func (c *contract) checkHeaders(e exchange, documented node) error {
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

// find returns the operation an exchange belongs to, and its path as documented. A path in full comes
// before one with parameters, unless only that has the method.
func (c *contract) find(e exchange) (found string, operation node) {
	sent, _, _ := strings.Cut(e.path, "?")
	parts := strings.Split(sent, "/")
	paths := c.doc.at("paths")
	method := strings.ToLower(e.method)
	if method == "head" {
		method = "get"
	}
	for path := range paths.members() {
		documented := strings.Split(path, "/")
		matches := slices.EqualFunc(documented, parts, func(d, p string) bool {
			return d == p || strings.HasPrefix(d, "{") && p != ""
		})
		if !matches {
			continue
		}
		if here := paths.at(path, method); found == "" || here.value != nil && (operation.value == nil || path == sent) {
			found, operation = path, here
		}
	}
	return found, operation
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
	return c.checkAnswer(e, c.doc.at("components", "responses", "Other"), path+" "+e.method+" default")
}

// checkRequest holds that no request outside the document was accepted.
func (c *contract) checkRequest(e exchange, operation node) error {
	schema := operation.at("requestBody", "content", "application/json", "schema")
	if schema.value == nil || e.status >= 300 || len(e.body) == 0 {
		return nil
	}
	return c.validate(schema, e.body)
}

func (c *contract) checkAnswer(e exchange, response node, key string) error {
	headers := response.at("headers")
	for name := range headers.members() {
		if e.header.Get(name) == "" && headers.at(name).members()["required"] == true {
			return fmt.Errorf("there is no header %s", name)
		}
	}
	if e.status == http.StatusNotModified || response.at("content").value == nil && len(e.answer) == 0 {
		return c.note(key, "", node{})
	}
	sent, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	media := response.at("content", sent)
	if media.value == nil {
		return fmt.Errorf("the type %q is not documented", sent)
	}
	if e.method == "HEAD" {
		return nil
	}
	problem := ""
	if strings.HasSuffix(sent, "json") {
		if err := c.validate(media.at("schema"), e.answer); err != nil {
			return err
		}
		value, _ := jsonschema.UnmarshalJSON(bytes.NewReader(e.answer))
		problem = typeOf(value)
	}
	return c.note(key, problem, media.at("examples"))
}

func typeOf(problem any) string {
	members, _ := problem.(map[string]any)
	name, _ := members["type"].(string)
	return name
}

// note keeps account of an answer. A type of problem must have an example.
func (c *contract) note(key, problem string, examples node) error {
	documented := problem == ""
	for name := range examples.members() {
		documented = documented || typeOf(examples.at(name, "value").value) == problem
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
func (c *contract) documented() map[string]node {
	all := map[string]node{}
	paths := c.doc.at("paths")
	for path := range paths.members() {
		for method := range paths.at(path).members() {
			responses := paths.at(path, method, "responses")
			for status := range responses.members() {
				content := responses.at(status, "content")
				if content.value == nil {
					all[path+" "+strings.ToUpper(method)+" "+status+" "] = node{}
				}
				for media := range content.members() {
					examples := content.at(media, "examples")
					for name := range examples.members() {
						problem := typeOf(examples.at(name, "value").value)
						all[path+" "+strings.ToUpper(method)+" "+status+" "+problem] = content.at(media)
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
	paths := theContract.doc.at("paths")
	for path := range paths.members() {
		for method := range paths.at(path).members() {
			media = append(media, paths.at(path, method, "requestBody", "content", "application/json"))
		}
	}
	checked := 0
	for _, m := range media {
		examples := m.at("examples")
		for name := range examples.members() {
			checked++
			if err := theContract.validateValue(m.at("schema"), examples.at(name, "value").value); err != nil {
				t.Errorf("%s: %s: %v", m.pointer, name, err)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d examples were found", checked)
	}
}

// A comma in a sentence without quotation marks ends it where it stands within braces: what
// follows is a member without a value.
func TestContract_Values_AreNotCut(t *testing.T) {
	text := must.Get(yaml.YAMLToJSON(mailgate.OpenAPI))(t)
	for _, member := range regexp.MustCompile(`"([^"]*)": ?null`).FindAllSubmatch(text, -1) {
		if name := string(member[1]); name != "rule" && name != "limit" && name != "until" { // of an example
			t.Errorf("%q has no value", name)
		}
	}
}

// Generators read OpenAPI 3.0, and linters want to know which operations need a key.
func TestContract_Form_SuitsGenerators(t *testing.T) {
	text := string(must.Get(yaml.YAMLToJSON(mailgate.OpenAPI))(t))
	if !strings.HasPrefix(text, `{"openapi": "3.0.`) || !strings.Contains(text, `"security": []`) {
		t.Errorf("it begins with %.400s", text)
	}
	for _, later := range []string{`"type": [`, `"const":`, `"propertyNames":`, `"null"`} {
		if strings.Contains(text, later) {
			t.Errorf("OpenAPI 3.0 does not know %s", later)
		}
	}
}

// The check itself finds what is planted.
func TestContract_Planted_IsFound(t *testing.T) {
	own := loadContract()
	for name, plant := range map[string]func(*exchange){
		"":                  func(*exchange) {},
		"a field too many":  func(e *exchange) { e.answer = []byte(`{"status":"live","x":1}`) },
		"a field too few":   func(e *exchange) { e.answer = []byte(`{}`) },
		"another type":      func(e *exchange) { e.header.Set("Content-Type", "text/html") },
		"kept by caches":    func(e *exchange) { e.header.Del("Cache-Control") },
		"says who serves":   func(e *exchange) { e.header.Set("Server", "fiber") },
		"a header too few":  func(e *exchange) { e.path = "/countdown/x" },
		"an unknown status": func(e *exchange) { e.status = 201 },
		"an unknown path":   func(e *exchange) { e.path = "/nowhere" },
		"no id":             func(e *exchange) { e.header.Del("X-Request-Id") },
		"an unknown problem": func(e *exchange) {
			e.status, e.answer = 503, []byte(`{"type":"x","title":"x","status":503,"detail":"x"}`)
		},
	} {
		e := exchange{"GET", "/livez", nil, 200, http.Header{}, []byte(`{"status":"live"}`)}
		for _, field := range []string{"X-Content-Type-Options: nosniff", "Cache-Control: no-store", "X-Request-Id: x", "Content-Type: application/json"} {
			key, value, _ := strings.Cut(field, ": ")
			e.header.Set(key, value)
		}
		plant(&e)
		if err := own.check(e); (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
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
