package address

import (
	"bytes"
	"encoding/json"
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
			if identity.providers[domain].Why != row.Why || len(row.Tag) > 1 {
				t.Errorf("%s has two rows, or a tag of several characters", domain)
			}
		}
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
