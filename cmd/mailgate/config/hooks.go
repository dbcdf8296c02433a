package config

import (
	"net/url"
	"slices"
	"strings"
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

// HookURL returns the URL of a hook, to be entered in its system.
func (c *Config) HookURL(name string) string {
	at := strings.TrimSuffix(c.PublicURL, "/")
	if at == "" {
		at = "http://" + c.Listen
	}
	return at + "/hooks/" + name
}

// hookRules are those that the settings of the hooks keep together.
func (c *Config) hookRules() (all []rule) {
	supabase, logto := len(c.HookSupabase) > 0, c.HookLogto != ""
	all = []rule{
		{supabase && c.HookSupabaseURL == "", "hook-supabase-url", "must be set with hook_supabase, to the address of Supabase Auth: https://PROJECT.supabase.co/auth/v1"},
		{!supabase && c.HookSupabaseURL != "", "hook-supabase-url", "has no effect without hook_supabase; set that too, or leave this out"},
		{!logto && c.HookLogtoURL != "", "hook-logto-url", "has no effect without hook_logto; set that too, or leave this out"},
	}
	for _, one := range [][2]string{{"hook-supabase-url", c.HookSupabaseURL}, {"hook-logto-url", c.HookLogtoURL}, {"public-url", c.PublicURL}} {
		u, err := url.Parse(one[1])
		all = append(all, rule{err != nil || u.User != nil || strings.ContainsAny(one[1], "?#"), one[0], "must be a URL without a user, a query or a fragment"})
	}
	for _, name := range c.Hooks() {
		all = append(all, rule{slices.Contains(c.APIKeys.Names(), name), "api-keys", "has a key named " + name + ", which is the name of a hook that is on; name the key otherwise"})
	}
	return all
}
