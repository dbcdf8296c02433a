package rules_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/throttle/rules"
)

// Every trait that a rule can count by is named wherever all of them are, and those that a look at a
// mailbox does not know where that is said.
func TestTraits_Each_IsNamedInEveryList(t *testing.T) {
	isKnown := func(by rules.By) bool { return by.Key(rules.Send{Mailbox: "a@b.example"}) != "" }
	unknown := slices.DeleteFunc(rules.Bys(), isKnown)
	subjects := slices.DeleteFunc(rules.Bys(), func(by rules.By) bool { return by.Subject() == "" })
	for _, list := range []struct {
		file, passage string
		traits        []rules.By
	}{
		{"docs/rules.md", `by: all +# or .*`, rules.Bys()},
		{"deploy/rules.yaml", `(?s)# A rule counts by .*?\. A send`, rules.Bys()},
		{"openapi.yaml", `(?s)RuleSubject:\n.*?never logged`, subjects},
		{"openapi.yaml", "Its limits, apart from rules by .*?, and its sends", unknown},
		{"openapi.yaml", "How a send would be answered now, apart from rules by .*?\\. ", without(unknown, rules.ByAPIKey)}, // whose caller asks
		{"openapi.yaml", "for a token of a look at a mailbox, apart from rules by .*", without(unknown, rules.ByAPIKey)},
		{"cmd/mailgate/show.go", `Rules that count by .*? are left out`, unknown},
		{"cmd/mailgate/show.go", `The subject of a rule by .*? has none`, subjects},
		{"api/web/console_mailbox.js", `Rules by .*? are not checked here`, unknown},
	} {
		text := string(must.Get(os.ReadFile("../../" + list.file))(t))
		passage := regexp.MustCompile(list.passage).FindString(text)
		if passage == "" {
			t.Errorf("%s has no passage %s", list.file, list.passage)
		}
		for _, by := range list.traits {
			if !strings.Contains(passage, string(by)) {
				t.Errorf("%s does not name the trait %s: %s", list.file, by, passage)
			}
		}
	}
}

func without(all []rules.By, one rules.By) []rules.By {
	return slices.DeleteFunc(slices.Clone(all), func(by rules.By) bool { return by == one })
}
