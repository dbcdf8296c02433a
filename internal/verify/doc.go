// Package verify makes and checks the codes that are emailed to prove a mailbox, and counts the
// guesses.
//
// A code is six decimal digits, each of the million equally likely:
//
//	code, err := codes.Issue(ctx, recipient)             // goes into the email
//	…
//	outcome, err := codes.Verify(ctx, recipient, typed)  // what was typed
//
// # What is kept
//
// A keyed hash of each code, never the code. A million codes are tried in a second, so a plain hash
// could be turned back into the code; this one cannot without the server's secret. It is bound to
// the address that the code was emailed to and to its purpose: a code for a sign-up is wrong for a
// change of password.
//
// # Which code is right
//
// Every code of a mailbox that has not expired. Email is slow and people press the button twice; a
// second code must not make the first one wrong while it is still on its way. A right code works
// once: the same step uses up all codes of the mailbox, whatever their purpose, so of simultaneous
// requests exactly one succeeds.
//
// # Guesses
//
// Guesses are a budget of the mailbox, in mailgate 5 in ten minutes and 20 in a day, and a new code
// adds none. A guess is charged before the code is checked, so guessing in parallel gains nothing,
// and refunded when the code was right. The chance that a day of guessing finds a code is 1 in 3,000
// with 16 valid codes, the most there can be. With the five an hour of the default tiers it is 1 in 10,000.
// Two simultaneous requests with the right code can compete for the last guess: then one has to
// wait until the other is answered.
//
// If no code was valid there was nothing to guess, and the guess is refunded as well, so that a
// stranger cannot spend the guesses in advance. After requesting a code for the mailbox a stranger
// still can: put a limit by network address in front.
//
// # Notes
//
// A note says what is to be done once a mailbox is verified, and is kept with the mailbox's codes. A right code
// returns the notes of all sends to the mailbox that have not expired. Merging two records keeps the notes of both,
// so one may be returned twice.
//
// # Outages
//
// A [keyed.Store] may decide alone while the shared records are unavailable. Its own records then
// hold the codes that were issued alone and are not yet in the shared records,
// and no others: only one of those is then Correct. Everything else is
// throttle.ErrUnavailable, right or wrong, and the guess stays charged. [Merge] updates the
// shared records afterwards, in any order and any number of times. A code that was revoked
// alone may come back by a merge until it expires, but no email has it.
//
// # Time
//
// All times are int64 milliseconds, by the clock of the store. A code is valid while the clock is
// before its expiry.
package verify
