package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
)

// sendDeadline bounds a whole send: a person waits for it.
const sendDeadline = 15 * time.Second

// requestPatience is how long mailgate's own clients wait for an answer.
const requestPatience = sendDeadline + 5*time.Second

// loadTemplates reads the built-in templates and those of the operator.
func loadTemplates(c *config.Config) (*message.Templates, error) {
	name, own := "locale", fs.FS(nil)
	if c.Templates != "" {
		name, own = "templates", os.DirFS(c.Templates)
		if info, err := os.Stat(c.Templates); err != nil || !info.IsDir() {
			return nil, c.Complain(name, c.Templates+" is not a directory that can be read; give one, or leave it out for the built-in templates")
		}
	}
	templates, err := message.LoadTemplates(own, c.Locale)
	if err == nil {
		return templates, nil
	}
	// If another default works, the locale is wrong, not a template.
	if others, wrong := message.LoadTemplates(own, "en"); wrong == nil {
		return nil, c.Complain("locale", fmt.Sprintf("not every template has %q; %s", c.Locale, localesIn(others)))
	}
	return nil, c.Complain(name, err.Error())
}

// localesIn lists the locales of each template: "code: en, zh".
func localesIn(templates *message.Templates) string {
	var all []string
	for _, name := range templates.Names() {
		all = append(all, name+": "+strings.Join(templates.Locales(name), ", "))
	}
	return strings.Join(all, "; ")
}

func newComposer(c *config.Config) (*message.Composer, error) {
	templates, err := loadTemplates(c)
	if err != nil {
		return nil, err
	}
	composer, err := message.NewComposer(c.From, templates)
	if err != nil {
		return nil, c.Complain("templates", err.Error()) // the built-in ones suit any sender
	}
	return composer, nil
}

// newRelays prepares the connections to the relays; the first email dials. They are greeted by
// the sender's domain: the name of a machine is often one that no relay can look up.
func newRelays(c *config.Config, log *slog.Logger, hooks relay.Hooks) (*relay.Relays, error) {
	_, domain, _ := strings.Cut(c.From.Address.String(), "@")
	relays, err := relay.New(c.SMTPURL, relay.Options{
		MaxConns: c.SMTPMaxConns,
		Deadline: sendDeadline,
		HELO:     domain,
		Pace:     relay.Pace{PerSecond: c.SMTPRate, Queue: c.SMTPQueue},
		Logger:   log,
		Hooks:    hooks,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the relay: %w", err)
	}
	return relays, nil
}
