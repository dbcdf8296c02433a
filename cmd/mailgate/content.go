package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/mailer"
	"github.com/mailgate/mailgate/rules/rulefile"
)

// A content is what can be read again while the program serves: the rules, and the texts
// of mails.
type content struct {
	rules    rulefile.File
	composer *mailer.Composer
	texts    [sha256.Size]byte // the operator's own, to see whether they have changed
}

// readContent reads all of it, or says what cannot be right.
func readContent(s *settings.Settings) (c content, err error) {
	if c.rules, err = readRules(s); err != nil {
		return c, err
	}
	if c.composer, err = newComposer(s); err != nil {
		return c, err
	}
	if s.Templates != "" {
		c.texts = fingerprint(os.DirFS(s.Templates))
	}
	return c, nil
}

// live is the content on what is on record.
func (c content) live(h history) (api.Live, error) {
	set, err := h.ruleSet(c.rules)
	if err != nil {
		return api.Live{}, fmt.Errorf("preparing the rules: %w", err)
	}
	return api.Live{Rules: set, Actions: h.actions(c.rules), Composer: c.composer}, nil
}

// fingerprint is the same for directories with the same templates, which have been read
// and are known to be sound.
func fingerprint(templates fs.FS) [sha256.Size]byte {
	whole := sha256.New()
	paths, _ := fs.Glob(templates, "*/*/*") // fails only for a pattern that is none
	for _, path := range paths {
		if strings.HasPrefix(path, ".") || strings.Contains(path, "/.") {
			continue
		}
		text, err := fs.ReadFile(templates, path)
		fmt.Fprintf(whole, "%q %v %d\n%s", path, err, len(text), text)
	}
	return [sha256.Size]byte(whole.Sum(nil))
}
