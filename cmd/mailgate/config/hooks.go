package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/hooks"
)

// Hooks makes the hooks that are on.
func (c *Config) Hooks() []hooks.Hook {
	all, _ := c.hooks()
	return all
}

// HooksOf makes those of one kind.
func HooksOf[H hooks.Hook](c *Config) (all []H) {
	for _, hook := range c.Hooks() {
		if one, ok := hook.(H); ok {
			all = append(all, one)
		}
	}
	return all
}

// hooks makes those whose settings are right, and returns the mistakes in the others.
func (c *Config) hooks() (all []hooks.Hook, wrong []rule) {
	if len(c.HookSupabase) > 0 {
		all = append(all, hooks.NewSupabase(c.HookSupabase, c.HookSupabaseURL))
	}
	if c.HookLogto != "" {
		all = append(all, hooks.NewLogto(string(c.HookLogto), c.HookLogtoURL))
	}
	for _, one := range []struct {
		name, setting string
		make          func(string) (hooks.Reporter, error)
	}{
		{"ses", c.HookSES.String(), hooks.NewSES}, {"sendgrid", string(c.HookSendGrid), hooks.NewSendGrid}, {"mailgun", string(c.HookMailgun), hooks.NewMailgun},
		{"postmark", string(c.HookPostmark), hooks.NewPostmark}, {"resend", string(c.HookResend), hooks.NewResend}, {"brevo", string(c.HookBrevo), hooks.NewBrevo},
	} {
		if one.setting == "" {
			continue
		}
		hook, err := one.make(one.setting)
		if err != nil {
			wrong = append(wrong, rule{true, "hook-" + one.name, err.Error()})
			continue
		}
		all = append(all, hook)
	}
	return all, wrong
}

// hookRules are those that the settings of the hooks keep together.
func (c *Config) hookRules() []rule {
	all := []rule{
		{len(c.HookSupabase) > 0 && c.HookSupabaseURL == "", "hook-supabase-url", "must be set with MAILGATE_HOOK_SUPABASE, to the address of Supabase Auth: https://PROJECT.supabase.co/auth/v1"},
		{strings.ContainsFunc(c.HookSupabaseURL, hooks.NotOfURL) || strings.HasSuffix(strings.TrimSuffix(c.HookSupabaseURL, "/"), "/verify"), "hook-supabase-url",
			"must be the address of Supabase Auth, such as https://PROJECT.supabase.co/auth/v1: /verify is added, and blanks and quotes are percent-encoded"},
	}
	on, wrong := c.hooks()
	all = append(all, wrong...)
	all = append(all, rule{c.HookUnproven && len(HooksOf[hooks.Reporter](c))+len(wrong) == 0, "hook-unproven", "has no effect without the hook of a provider; set one, or leave this out"})
	for _, name := range hooks.Names(on) {
		all = append(all, rule{slices.Contains(c.APIKeys.Names(), name), "api-keys", "has a key named " + name + ", which is the name of a hook that is on; name the key otherwise"})
	}
	return all
}

// eventRules are those that the settings of the events keep together.
func (c *Config) eventRules() []rule {
	on := c.EventsURL != ""
	return []rule{
		{on && len(c.EventsSecret) == 0, "events-secret", `must be set with MAILGATE_EVENTS_URL; make one: echo "whsec_$(openssl rand -base64 32)"`},
		{on && !private(c.EventsURL), "events-url", "must begin with https:// unless it is on this machine, as events have addresses"},
		{on && (c.DataDir == Memory || c.RedisURL != "" && !c.hasDataDir()), "events-url", "needs a directory for the journal of events; set MAILGATE_DATA_DIR"},
	}
}

// private reports whether what is sent to a URL cannot be read on the way.
func private(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || isLoopback(net.JoinHostPort(u.Hostname(), "0")))
}
