// Package sandbox is a throw-away mail relay: a real SMTP server on the
// loopback interface that delivers nothing and keeps the last mails it was
// given in memory, to be listed, fetched and waited for.
//
// It is what "mailgate dev" sends to, and what tests put in the place of a
// relay. It speaks SMTP as relays do (PIPELINING, SIZE, 8BITMIME,
// ENHANCEDSTATUSCODES; STARTTLS or TLS from the first octet, and AUTH, when
// asked for), so a client that works against it has really spoken SMTP.
//
// A Server listens on loopback only; Start refuses any other address. What it
// keeps is bounded by a count and by octets, oldest dropped first. The package
// fault, below it, is its evil twin: a relay that misbehaves on command.
package sandbox
