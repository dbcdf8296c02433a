package address

import (
	"bytes"
	"encoding/json"
	"slices"
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
	var rows []*provider
	decoder := json.NewDecoder(bytes.NewReader(providersJSON))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, domain := range row.Domains {
			if _, err := Parse("a@"+domain, identity); err != nil || identity.providers[domain].Why != row.Why {
				t.Errorf("%s has two rows, or no mailboxes: %v", domain, err)
			}
		}
		says := row.OneAs != "" || row.Ignore != "" || row.Alike != "" || row.Tag != "" || row.Subdomain
		if !says || len(row.Why) < 40 || len(row.Tag) > 1 || row.OneAs != "" && !slices.Contains(row.Domains, row.OneAs) {
			t.Errorf("%v: it says nothing or without a reason, a tag has several characters, or they are one with another row's", row.Domains)
		}
		if strings.ContainsAny(row.Ignore+row.Alike+row.Tag, "@+") {
			t.Errorf("%v: @ and + are not a provider's to redefine", row.Domains)
		}
	}
}
