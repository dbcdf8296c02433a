// Package demo is the sign-up form of "mailgate dev": a small back end that uses mailgate over
// HTTP with an API key, as any back end does, and an inbox with the emails of the throw-away
// relay.
//
// It serves loopback names only, so that no page from elsewhere reaches it through the
// visitor's browser.
package demo
