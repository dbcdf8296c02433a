package main

import (
	"slices"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/rules/rulefile"
)

// keysTwice are the keys of back ends and of operators that have two secrets.
func keysTwice(s *settings.Settings) []string {
	return append(s.APIKeys.Twice(), s.AdminKeys.Twice()...)
}

// unknown is a rule, and the API keys that it exempts and nobody has.
type unknown struct {
	rule string
	keys []string
}

// unknownKeys finds what the rules file cannot know: names of API keys that are not set,
// which are most likely misspelt.
func unknownKeys(file rulefile.File, s *settings.Settings) (all []unknown) {
	known := s.APIKeys.Names()
	for _, r := range file.Rules {
		var missing []string
		for _, name := range r.Exempt.Callers {
			if !slices.Contains(known, name) {
				missing = append(missing, name)
			}
		}
		if missing != nil {
			all = append(all, unknown{r.Name, missing})
		}
	}
	return all
}
