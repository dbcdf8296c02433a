package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/suppression/bounce"
)

// Hooks lists the names of the hooks that are on.
func (c *Config) Hooks() (names []string) {
	if len(c.HookSupabase) > 0 {
		names = append(names, "supabase")
	}
	if c.HookLogto != "" {
		names = append(names, "logto")
	}
	return names
}

// BounceHook is the hook of an email provider.
type BounceHook struct{ Name, Setting string }

// BounceHooks lists those that are on.
func (c *Config) BounceHooks() []BounceHook {
	all := []BounceHook{
		{"ses", c.HookSES.String()}, {"sendgrid", string(c.HookSendGrid)}, {"mailgun", string(c.HookMailgun)},
		{"postmark", string(c.HookPostmark)}, {"resend", string(c.HookResend)}, {"brevo", string(c.HookBrevo)},
	}
	return slices.DeleteFunc(all, func(h BounceHook) bool { return h.Setting == "" })
}

// Former returns the secrets that were in use before.
func (c *Config) Former() (all [][]byte) {
	for one := range strings.SplitSeq(string(c.FormerSecrets), "|") {
		if c.FormerSecrets != "" {
			all = append(all, []byte(strings.TrimSpace(one)))
		}
	}
	return all
}

// hookRules are those that the settings of the hooks keep together.
func (c *Config) hookRules() []rule {
	supabase, logto := len(c.HookSupabase) > 0, c.HookLogto != ""
	all := []rule{
		{supabase && c.HookSupabaseURL == "", "hook-supabase-url", "must be set with hook_supabase, to the address of Supabase Auth: https://PROJECT.supabase.co/auth/v1"},
		{!supabase && c.HookSupabaseURL != "", "hook-supabase-url", "has no effect without hook_supabase; set that too, or leave this out"},
		{strings.ContainsFunc(c.HookSupabaseURL, hooks.NotOfURL) || strings.HasSuffix(strings.TrimSuffix(c.HookSupabaseURL, "/"), "/verify"), "hook-supabase-url",
			"must be the address of Supabase Auth, such as https://PROJECT.supabase.co/auth/v1: /verify is added, and blanks and quotes are percent-encoded"},
		{!logto && c.HookLogtoURL != "", "hook-logto-url", "has no effect without hook_logto; set that too, or leave this out"},
	}
	names := c.Hooks()
	for _, hook := range c.BounceHooks() {
		names = append(names, hook.Name)
		if _, err := bounce.New(hook.Name, hook.Setting, nil); err != nil {
			all = append(all, rule{true, "hook-" + hook.Name, err.Error()})
		}
	}
	short := slices.ContainsFunc(c.Former(), func(one []byte) bool { return len(one) < secret.MinLength })
	all = append(all, rule{short, "former-secrets", "has one of fewer than 16 characters; write | between several"})
	all = append(all, rule{c.HookUnproven && len(c.BounceHooks()) == 0, "hook-unproven", "has no effect without the hook of a provider; set one, or leave this out"})
	for _, name := range names {
		all = append(all, rule{slices.Contains(c.APIKeys.Names(), name), "api-keys", "has a key named " + name + ", which is the name of a hook that is on; name the key otherwise"})
	}
	return all
}

// eventRules are those that the settings of the events keep together.
func (c *Config) eventRules() []rule {
	on := c.EventsURL != ""
	return []rule{
		{on && len(c.EventsSecret) == 0, "events-secret", `must be set with events_url; make one: echo "whsec_$(openssl rand -base64 32)"`},
		{!on && len(c.EventsSecret) > 0, "events-url", "must be set with events_secret, to where the events are posted"},
		{on && !private(c.EventsURL), "events-url", "must begin with https:// unless it is on this machine, as events have addresses"},
		{on && (c.DataDir == Memory || c.RedisURL != "" && !c.hasDataDir()), "events-url", "needs a directory for the journal of events; set " + envName("data-dir")},
	}
}

// private reports whether what is sent to a URL cannot be read on the way.
func private(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || isLoopback(net.JoinHostPort(u.Hostname(), "0")))
}
