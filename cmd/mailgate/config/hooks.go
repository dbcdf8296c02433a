package config

import "slices"

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

// hookRules are those that the settings of the hooks keep together.
func (c *Config) hookRules() []rule {
	supabase, logto := len(c.HookSupabase) > 0, c.HookLogto != ""
	all := []rule{
		{supabase && c.HookSupabaseURL == "", "hook-supabase-url", "must be set with hook_supabase, to the address of Supabase Auth: https://PROJECT.supabase.co/auth/v1"},
		{!supabase && c.HookSupabaseURL != "", "hook-supabase-url", "has no effect without hook_supabase; set that too, or leave this out"},
		{!logto && c.HookLogtoURL != "", "hook-logto-url", "has no effect without hook_logto; set that too, or leave this out"},
	}
	for _, name := range c.Hooks() {
		all = append(all, rule{slices.Contains(c.APIKeys.Names(), name), "api-keys", "has a key named " + name + ", which is the name of a hook that is on; name the key otherwise"})
	}
	return all
}
