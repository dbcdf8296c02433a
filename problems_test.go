package mailgate_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/internal/must"
)

// The page of problems has a heading for each type that the API answers, with its status, and no
// other, and the contract leads to it.
func TestProblems_EachType_IsExplained(t *testing.T) {
	named := func(pattern, text string) map[string]string {
		all := map[string]string{}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all[match[1]] = match[2]
		}
		return all
	}
	answered := map[string]string{}
	for _, match := range regexp.MustCompile(`&kind\{(\d+), "([a-z-]+)"`).FindAllStringSubmatch(string(must.Get(os.ReadFile("api/problem.go"))(t)), -1) {
		answered[match[2]] = match[1]
	}
	explained := named(`(?m)^## ([a-z-]+)\n\n(\d+)[.,] `, string(must.Get(os.ReadFile("docs/problems.md"))(t)))
	if len(answered) < 20 || !maps.Equal(answered, explained) {
		t.Errorf("the API answers\n%v\nthe page explains\n%v", answered, explained)
	}
	contract := string(mailgate.OpenAPI)
	for name := range answered {
		if name != "quota-exceeded" && !regexp.MustCompile(`urn:mailgate:problem:`+name+`\b`).MatchString(contract) {
			t.Errorf("openapi.yaml has no %s", name)
		}
	}
	if !strings.Contains(contract, "blob/main/docs/problems.md") || !slices.Contains(linksOf("docs/clients.md", string(must.Get(os.ReadFile("docs/clients.md"))(t))), "problems.md") {
		t.Error("the contract or the page of the clients does not lead to it")
	}
}
