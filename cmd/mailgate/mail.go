package main

import (
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
)

// sendDeadline bounds a whole send: a person waits for it.
const sendDeadline = 15 * time.Second

// requestPatience is how long mailgate's own clients wait for an answer.
const requestPatience = sendDeadline + 5*time.Second

// newComposer reads the built-in templates and those of the operator.
func newComposer(c *config.Config) (*message.Composer, error) {
	setting, own := "locale", fs.FS(nil) // the built-in templates lack only locales
	if c.Templates != "" {
		setting, own = "templates", os.DirFS(c.Templates)
		if info, err := os.Stat(c.Templates); err != nil || !info.IsDir() {
			return nil, c.Complain(setting, c.Templates+" is not a directory that can be read; give one, or leave it out for the built-in templates")
		}
	}
	templates, err := message.LoadTemplates(own, c.Locale, hooks.Names(config.HooksOf[hooks.Sender](c))...)
	if err != nil {
		return nil, c.Complain(setting, err.Error())
	}
	composer, err := message.NewComposer(c.From, templates)
	if err != nil {
		return nil, c.Complain(setting, err.Error())
	}
	for _, name := range composer.Templates() {
		if composer.HasNotMe(name) && c.PublicURL == "" {
			return nil, c.Complain("public-url", "must be set, as the template "+name+" has {{.NotMe}}, a link to this node")
		}
	}
	return composer, nil
}

// paceQueue is how many emails may wait under smtp-rate.
const paceQueue = 100

// newRelays prepares the connections to the relays; the first email dials. They are greeted by
// the sender's domain: the name of a machine is often one that no relay can look up.
func newRelays(c *config.Config, log *slog.Logger, metrics relay.Metrics) (*relay.Relays, error) {
	_, domain, _ := strings.Cut(c.From.Address.String(), "@")
	relays, err := relay.New(c.SMTPURL, relay.Options{
		MaxConns: c.SMTPMaxConns,
		Deadline: sendDeadline,
		HELO:     domain,
		Pace:     relay.Pace{PerSecond: c.SMTPRate, Queue: paceQueue},
		Logger:   log,
		Metrics:  metrics,
	})
	if err != nil {
		return nil, c.Complain("smtp-url", err.Error())
	}
	return relays, nil
}
