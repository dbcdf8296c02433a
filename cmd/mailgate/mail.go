package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mailgate/mailgate/cmd/mailgate/settings"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
)

// sendDeadline bounds a send as a whole: a person waits at the other end.
const sendDeadline = 15 * time.Second

// requestPatience is how long our own clients wait for an answer.
const requestPatience = sendDeadline + 5*time.Second

// loadTemplates reads the mails' texts, also those of the operator's own.
func loadTemplates(s *settings.Settings) (*message.Templates, error) {
	name, own := "locale", fs.FS(nil)
	if s.Templates != "" {
		name, own = "templates", os.DirFS(s.Templates)
		if info, err := os.Stat(s.Templates); err != nil || !info.IsDir() {
			return nil, s.Complain(name, s.Templates+" is not a directory that can be read")
		}
	}
	templates, err := message.LoadTemplates(own, s.Locale)
	if err == nil {
		return templates, nil
	}
	// Where another default would do, it is the locale that is wrong, not a template.
	if others, wrong := message.LoadTemplates(own, "en"); wrong == nil {
		return nil, s.Complain("locale", fmt.Sprintf("not every template has %q; %s", s.Locale, localesIn(others)))
	}
	return nil, s.Complain(name, err.Error())
}

// localesIn says which locales there are: "code: en, zh".
func localesIn(templates *message.Templates) string {
	var all []string
	for _, name := range templates.Names() {
		all = append(all, name+": "+strings.Join(templates.Locales(name), ", "))
	}
	return strings.Join(all, "; ")
}

func newComposer(s *settings.Settings) (*message.Composer, error) {
	templates, err := loadTemplates(s)
	if err != nil {
		return nil, err
	}
	composer, err := message.NewComposer(s.From, templates)
	if err != nil {
		return nil, s.Complain("templates", err.Error()) // those built in suit any sender
	}
	return composer, nil
}

// newRelays makes the connections to the relays; the first mail dials.
func newRelays(s *settings.Settings, log *slog.Logger, hooks relay.Hooks) (*relay.Relays, error) {
	host, _ := os.Hostname() // without one it is the sender's domain
	relays, err := relay.New(s.SMTPURL, relay.Options{
		MaxConns: s.SMTPMaxConns,
		Deadline: sendDeadline,
		HELO:     heloName(host, s.From),
		Pace:     pace(s),
		Logger:   log,
		Hooks:    hooks,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the relay: %w", err)
	}
	return relays, nil
}

func pace(s *settings.Settings) relay.Pace {
	if s.SMTPRate == 0 {
		return relay.Pace{}
	}
	return relay.Pace{PerSecond: s.SMTPRate, Queue: s.SMTPQueue}
}

// heloName is how mailgate introduces itself: by the machine's name if others may know it,
// as relays like it, else by the sender's domain. Relays refuse a name that no mail could go
// to, as with an underscore.
func heloName(host string, from message.Sender) string {
	postmaster, err := address.Parse("postmaster@"+strings.Trim(host, "."), address.Identity{})
	if err != nil || isPrivate(postmaster.String()) {
		postmaster = from.Address
	}
	_, domain, _ := strings.Cut(postmaster.String(), "@")
	return domain
}

// isPrivate tells what a machine calls itself from a name that others may know.
func isPrivate(address string) bool {
	top := address[strings.LastIndexByte(address, '.')+1:]
	return slices.Contains([]string{"localdomain", "localhost", "local", "internal", "lan", "home"}, top)
}
