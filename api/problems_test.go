package api_test

import (
	"maps"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/must"
	problems "github.com/mailgate/mailgate/internal/wire"
)

// The page of problems has a heading for each type that the API answers, with its status, and no
// other; each type leads to the server's page, which has it too.
func TestProblems_EachType_IsExplained(t *testing.T) {
	named := func(pattern, text string) map[string]string {
		all := map[string]string{}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all[match[1]] = match[2]
		}
		return all
	}
	answered := map[string]string{}
	for _, match := range regexp.MustCompile(`&kind\{(\d+), "([a-z-]+)"`).FindAllStringSubmatch(string(must.Get(os.ReadFile("problem.go"))(t)), -1) {
		answered[match[2]] = match[1]
	}
	explained := named(`(?m)^## ([a-z-]+)\n\n\*\*(\d+)\b`, string(must.Get(mailgate.Pages.ReadFile("docs/problems.md"))(t)))
	if len(answered) < 20 || !maps.Equal(answered, explained) {
		t.Errorf("the API answers\n%v\nthe page explains\n%v", answered, explained)
	}
	contract, server := string(mailgate.OpenAPI), must.Get(url.Parse("https://gate.example/send-code"))(t)
	page := string(must.Get(web.Docs(mailgate.OpenAPI, mailgate.Pages, "test"))(t))
	for name := range answered {
		problem := problems.Ours + name
		if name != "quota-exceeded" && !regexp.MustCompile(problem+`\b`).MatchString(contract) {
			t.Errorf("openapi.yaml has no %s", problem)
		}
		if leads := must.Get(server.Parse(problem))(t); leads.Path != "/docs" || strings.Count(page, `id="`+leads.Fragment+`"`) != 1 {
			t.Errorf("%s leads to %s", problem, leads)
		}
	}
	if !strings.HasSuffix(problems.Explained, "/docs/problems.md#") || !strings.Contains(string(must.Get(os.ReadFile("../docs/clients.md"))(t)), "](problems.md)") {
		t.Error("the page of the clients does not lead to it")
	}
}
