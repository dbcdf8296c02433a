package web

import (
	"fmt"
	"slices"
	"strings"
)

// What the page shows of the contract, in the contract's order.
type (
	contract struct {
		Title, Summary, Description string
		Groups                      []*group
		Other                       answer // that any request may get
	}
	group struct {
		Name, Description string
		Operations        []operation
	}
	operation struct {
		ID, Method, Path, Summary, Description, Key string
		Parameters, Body                            []field
		Examples                                    []example
		Answers                                     []answer
	}
	answer struct {
		Status, Description string
		Media               []string // the types of what has no example
		Headers, Fields     []field
		Examples            []example
	}
	field struct {
		Name, Type, Description string
		Required                bool
	}
	example struct {
		Name, Status, Title, Text string // status and title are those of a problem
	}
)

// HasOptional reports whether a request may have parameters that it need not have.
func (o operation) HasOptional() bool {
	return slices.ContainsFunc(o.Parameters, func(f field) bool { return !f.Required })
}

func readContract(text []byte) (c contract, err error) {
	top, err := parseYAML(text)
	if err != nil {
		return c, err
	}
	info := top.get("info")
	c = contract{Title: info.text("title")}
	c.Summary, c.Description, _ = strings.Cut(info.text("description"), "\n\n")
	for _, tag := range top.get("tags").list() {
		c.Groups = append(c.Groups, &group{Name: tag.text("name"), Description: tag.text("description")})
	}
	for path, methods := range top.get("paths").members() {
		for method, from := range methods.members() {
			o, err := readOperation(method, path, from)
			if err == nil {
				c.Other, err = readAnswer("", from.get("responses").get("default").resolved())
			}
			if err != nil {
				return c, fmt.Errorf("%s %s: %w", method, path, err)
			}
			tag := from.get("tags").list()
			i := slices.IndexFunc(c.Groups, func(g *group) bool { return len(tag) > 0 && g.Name == tag[0].string() })
			if i < 0 {
				return c, fmt.Errorf("%s %s has no known tag", method, path)
			}
			c.Groups[i].Operations = append(c.Groups[i].Operations, o)
		}
	}
	return c, nil
}

func readOperation(method, path string, from node) (o operation, err error) {
	o = operation{
		ID: from.text("operationId"), Method: strings.ToUpper(method), Path: path,
		Summary: from.text("summary"), Description: from.text("description"),
	}
	for _, scheme := range from.get("security").list() {
		for name := range scheme.members() {
			o.Key = strings.TrimSuffix(name, "Key") // apiKey, adminKey
		}
	}
	for _, p := range from.get("parameters").list() {
		p = p.resolved()
		o.Parameters = append(o.Parameters, field{p.text("name"), p.text("in"), p.text("description"), p.text("required") == "true"})
	}
	for _, media := range from.get("requestBody").get("content").members() {
		o.Body = readFields(media.get("schema"))
		if o.Examples, err = readExamples(media); err != nil {
			return o, err
		}
	}
	for status, response := range from.get("responses").members() {
		if status == "default" {
			continue
		}
		a, err := readAnswer(status, response.resolved())
		if err != nil {
			return o, err
		}
		o.Answers = append(o.Answers, a)
	}
	return o, nil
}

func readAnswer(status string, from node) (a answer, err error) {
	a = answer{Status: status, Description: from.text("description")}
	for name, header := range from.get("headers").members() {
		a.Headers = append(a.Headers, field{Name: name, Description: header.resolved().text("description")})
	}
	for kind, media := range from.get("content").members() {
		examples, err := readExamples(media)
		if err != nil {
			return a, err
		}
		a.Examples = append(a.Examples, examples...)
		if len(examples) == 0 {
			a.Media = append(a.Media, kind)
		}
		if strings.HasPrefix(status, "2") {
			a.Fields = readFields(media.get("schema"))
		}
	}
	for i := range a.Fields {
		a.Fields[i].Required = false // required is for what the reader sends
	}
	return a, nil
}

// readFields returns the members of an object's schema.
func readFields(schema node) (fields []field) {
	schema = schema.resolved()
	for _, part := range schema.get("allOf").list() {
		fields = append(fields, readFields(part)...)
	}
	var required []string
	for _, name := range schema.get("required").list() {
		required = append(required, name.string())
	}
	for name, member := range schema.get("properties").members() {
		member = member.resolved()
		fields = append(fields, field{name, typeOf(member), member.text("description"), slices.Contains(required, name)})
	}
	return fields
}

func typeOf(schema node) string {
	kind, values := schema.text("type"), schema.get("enum").list()
	switch {
	case schema.text("nullable") == "true":
		return kind + " or null"
	case kind == "array":
		return "list"
	case schema.text("format") == "date-time":
		return "time"
	case kind == "string" && len(values) == 1:
		return `"` + values[0].string() + `"`
	}
	return kind
}

func readExamples(media node) (examples []example, err error) {
	for name, from := range media.get("examples").members() {
		from = from.resolved()
		if summary := from.text("summary"); summary != "" {
			name = summary
		}
		value := from.get("value")
		text, isText := value.value.(string)
		if !isText {
			if text, err = value.json(); err != nil {
				return nil, err
			}
		}
		examples = append(examples, example{name, value.text("status"), value.text("title"), text})
	}
	return examples, nil
}
