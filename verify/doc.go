// Package verify knows the codes that are mailed to prove a mailbox: it makes them,
// keeps what is needed to check them, and counts the guesses.
//
// A code is six decimal digits, every one of the million equally likely. A [Desk] hands
// them out and takes them back:
//
//	code, err := desk.Issue(ctx, recipient)             // goes into the mail
//	…
//	outcome, err := desk.Verify(ctx, recipient, typed)  // what somebody typed
//
// # What is kept
//
// A [Book] keeps a [Hash] of each code and never the code. A hash is made with a key that
// comes from the server's secret: a million codes are tried in a second, so a plain hash
// of one could be read back, and this one cannot without the secret. It is bound to the
// address that the code was mailed to, and to the purpose if that was given one, and proves
// no other: a code that was mailed for a sign-up is wrong for a change of password.
//
// # Which code is right
//
// Every code of a mailbox that has not expired. Mail is slow and people press the button
// twice; a second code must not make the first one wrong while it is still on its way.
// The right code is right once: all the codes of the mailbox, whatever they are for, are
// forgotten in the same step, so of any number who bring it at once exactly one is told so.
//
// # Guesses
//
// Guesses are a budget of the mailbox, by [DefaultGuesses] 5 in ten minutes and 20 in a
// day, and a new code brings no new ones. A guess is taken from the budget before the
// code is looked at, so that guessing in parallel gains nothing, and it is given back
// when the code was right. With at most [MaxCodes] codes that are good at once, a day of
// guessing finds one with a chance of 1 in 3,000; with the five that the default tiers
// let out in an hour, 1 in 10,000.
//
// Where no code was on record there was nothing to guess, and the guess is given back
// as well. Otherwise five presses on an old form would shut out the code that is asked
// for next, and a stranger could spend the guesses of a mailbox in advance. A stranger
// who asks for a code in somebody's name and guesses at once can still spend them: only
// a limit by the stranger's own address keeps that apart, and it belongs before this one.
//
// A guess that is being looked at is taken, also one that is then given back. So where four
// of five are spent and the right code is brought twice at once, one is told that it is
// right, and the other may be told that the guesses are spent, with a wait that is over as
// soon as the first is answered.
//
// # Time
//
// All times are int64 milliseconds. A code is right while the clock is before its expiry,
// and no longer. The clock is the book's, which for a shared book is one clock for all
// servers; that is why a code is added with a lifetime and not with an expiry. What has
// once been found expired is forgotten, so a clock that steps back brings back no code
// that was refused as expired before. A code that nobody asked about in the meantime
// lasts until its expiry by the clock as it then is.
package verify
