package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// What the docs page shows of openapi.yaml, in the order in which it is written.
type (
	docsContract struct {
		Title, Summary, Description string
		Groups                      []docsGroup
	}
	docsGroup struct {
		Name, Description string
		Operations        []docsOperation
	}
	docsOperation struct {
		ID, Method, Path, Summary, Description, Key string
		Parameters, Body                            []docsField
		Examples                                    []docsExample
		Answers                                     []docsAnswer
	}
	docsAnswer struct {
		Status, Description string
		Headers, Fields     []docsField
		Examples            []docsExample
	}
	docsField struct {
		Name, Type, Description string
		Required                bool
	}
	docsExample struct {
		Name, Text string
	}
)

// readContract reads openapi.yaml for the docs page.
func readContract(text []byte) (docsContract, error) {
	var root any
	if err := yaml.UnmarshalWithOptions(text, &root, yaml.UseOrderedMap()); err != nil {
		return docsContract{}, errors.New("openapi.yaml is no YAML")
	}
	top := node{root, root}
	info := top.get("info")
	c := docsContract{Title: info.text("title"), Summary: info.text("summary"), Description: info.text("description")}
	for _, tag := range top.get("tags").list() {
		c.Groups = append(c.Groups, docsGroup{Name: tag.text("name"), Description: tag.text("description")})
	}
	for path, methods := range top.get("paths").all() {
		for method, operation := range methods.all() {
			tag := operation.get("tags").list()
			i := slices.IndexFunc(c.Groups, func(g docsGroup) bool { return len(tag) > 0 && g.Name == tag[0].string() })
			if i < 0 {
				return c, fmt.Errorf("openapi.yaml: %s %s has no known tag", method, path)
			}
			c.Groups[i].Operations = append(c.Groups[i].Operations, readOperation(method, path, operation))
		}
	}
	return c, nil
}

func readOperation(method, path string, from node) docsOperation {
	o := docsOperation{
		ID: from.text("operationId"), Method: strings.ToUpper(method), Path: path,
		Summary: from.text("summary"), Description: from.text("description"),
	}
	for _, scheme := range from.get("security").list() {
		for name := range scheme.all() {
			o.Key = keyName(name)
		}
	}
	for _, p := range from.get("parameters").list() {
		p = p.resolved()
		o.Parameters = append(o.Parameters, docsField{p.text("name"), p.text("in"), p.text("description"), p.text("required") == "true"})
	}
	for _, media := range from.get("requestBody").get("content").all() {
		o.Body = readFields(media.get("schema"))
		o.Examples = readExamples(media)
	}
	for status, answer := range from.get("responses").all() {
		o.Answers = append(o.Answers, readAnswer(status, answer.resolved()))
	}
	return o
}

func readAnswer(status string, from node) docsAnswer {
	a := docsAnswer{Status: status, Description: from.text("description")}
	for name, header := range from.get("headers").all() {
		header = header.resolved()
		a.Headers = append(a.Headers, docsField{Name: name, Description: header.text("description")})
	}
	for _, media := range from.get("content").all() {
		a.Examples = readExamples(media)
		if strings.HasPrefix(status, "2") {
			a.Fields = readFields(media.get("schema"))
			for i := range a.Fields {
				a.Fields[i].Required = false // of a request it is news, of an answer it is not
			}
		}
	}
	return a
}

// readFields flattens an object's schema into its members.
func readFields(schema node) (fields []docsField) {
	schema = schema.resolved()
	for _, part := range schema.get("allOf").list() {
		fields = append(fields, readFields(part)...)
	}
	var required []string
	for _, name := range schema.get("required").list() {
		required = append(required, name.string())
	}
	for name, member := range schema.get("properties").all() {
		member = member.resolved()
		fields = append(fields, docsField{name, typeOf(member), member.text("description"), slices.Contains(required, name)})
	}
	return fields
}

// typeOf is a member's type in a few words.
func typeOf(schema node) string {
	kind := schema.get("type")
	switch {
	case len(kind.list()) > 0:
		var names []string
		for _, one := range kind.list() {
			names = append(names, one.string())
		}
		return strings.Join(names, " or ")
	case kind.string() == "array":
		return "list"
	case schema.text("format") == "date-time":
		return "time"
	case schema.text("const") != "":
		return `"` + schema.text("const") + `"`
	}
	return kind.string()
}

func readExamples(media node) (examples []docsExample) {
	for name, example := range media.get("examples").all() {
		example = example.resolved()
		value := example.get("value")
		text, plain := value.value.(string)
		if !plain {
			text = value.json("")
		}
		if summary := example.text("summary"); summary != "" {
			name = summary
		}
		examples = append(examples, docsExample{name, text})
	}
	return examples
}

// keyName is what people call the key of a security scheme.
func keyName(scheme string) string {
	if scheme == "apiKey" {
		return "API"
	}
	return strings.TrimSuffix(scheme, "Key")
}

// KeyKind tells the page's script whose key a request takes.
func (o docsOperation) KeyKind() string {
	if o.Key == "admin" {
		return "admin"
	}
	return "api"
}

// FirstExample is a body to begin with.
func (o docsOperation) FirstExample() string {
	if len(o.Examples) == 0 {
		return "{}"
	}
	return o.Examples[0].Text
}
