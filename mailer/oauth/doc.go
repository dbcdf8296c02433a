// Package oauth gets the tokens that a relay takes in place of a password, by OAuth 2.0
// (RFC 6749): with a client's own credentials, or with a refresh token.
//
// A [Grant] is what a file says of that, and [Tokens] asks the token server when there is
// need, once however many wait for it, and keeps the token for as long as it is good.
//
// It is written for this module instead of taken from a library because of what it
// promises: each who asks gives up when his own time ends, no answer is read beyond a
// bound or sought elsewhere, and no error has a secret in it.
//
//	grant, err := oauth.ParseGrant(text)
//	tokens := oauth.NewTokens(grant, 10*time.Second, clock.Now)
//	token, err := tokens.Token(ctx)
//	…
//	tokens.Refused(token) // where the relay would not have it
package oauth
