package main

import (
	"fmt"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/rules/rulefile"
)

// A content is what can be read again while the program serves: the rules, and the texts
// of mails.
type content struct {
	rules    rulefile.File
	composer *message.Composer
}

// readContent reads all of it, or says what cannot be right.
func readContent(s *settings.Settings) (c content, err error) {
	if c.rules, err = readRules(s); err != nil {
		return c, err
	}
	c.composer, err = newComposer(s)
	return c, err
}

// live is the content on what is on record.
func (c content) live(h history) (api.Live, error) {
	set, err := h.ruleSet(c.rules)
	if err != nil {
		return api.Live{}, fmt.Errorf("preparing the rules: %w", err)
	}
	return api.Live{Rules: set, Actions: h.actions(c.rules), Composer: c.composer}, nil
}
