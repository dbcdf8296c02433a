package address

import (
	"strings"
	"testing"
)

// Each row of providers.json must be usable: domains in wire form, one meaning
// each, and a source for what it claims.
func TestProviders_Rows_Usable(t *testing.T) {
	identity, err := NewIdentity(true)
	if err != nil {
		t.Fatal(err)
	}
	for domain, row := range identity.providers {
		if _, err := Parse("a@"+domain, identity); err != nil {
			t.Errorf("%s: %v", domain, err)
		}
		if len(row.Why) < 40 {
			t.Errorf("%s: %q is no reason", domain, row.Why)
		}
		if row.OneAs != "" && identity.providers[row.OneAs] != row {
			t.Errorf("%s is one with %s, which is not in its row", domain, row.OneAs)
		}
		if row.OneAs == "" && row.Ignore == "" && row.Alike == "" && row.Tag == "" && !row.Subdomain {
			t.Errorf("%s: the row says nothing", domain)
		}
		if strings.ContainsAny(row.Ignore+row.Alike+row.Tag, "@+") {
			t.Errorf("%s: @ and + are not a provider's to redefine", domain)
		}
	}
}

func TestProviders_BrokenTable_Refused(t *testing.T) {
	tests := map[string]string{
		"no JSON":       `nonsense`,
		"unknown field": `[{"domains":["a.example"],"why":"said so","dots":true}]`,
		"no domain":     `[{"domains":[],"why":"said so"}]`,
		"no reason":     `[{"domains":["a.example"]}]`,
		"long tag":      `[{"domains":["a.example"],"why":"said so","tag":"--"}]`,
		"twice":         `[{"domains":["a.example"],"why":"x"},{"domains":["a.example"],"why":"y"}]`,
	}
	for name, text := range tests {
		if _, err := parseProviders([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
