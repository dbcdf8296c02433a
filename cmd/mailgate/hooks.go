package main

import (
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/suppression/bounce"
)

// newHooks makes the hooks that the settings have on.
func newHooks(c *config.Config) (all []api.Hook) {
	if secrets := c.HookSupabase; len(secrets) > 0 {
		all = append(all, hooks.NewSupabase(secrets, c.HookSupabaseURL))
	}
	if c.HookLogto != "" {
		all = append(all, hooks.NewLogto(string(c.HookLogto), c.HookLogtoURL))
	}
	return all
}

// newBounceHooks makes the hooks of email providers that the settings have on.
func newBounceHooks(c *config.Config) (all []*bounce.Hook) {
	for _, one := range c.BounceHooks() {
		hook, _ := bounce.New(one.Name, one.Setting, nil) // its setting was checked
		all = append(all, hook)
	}
	return all
}
