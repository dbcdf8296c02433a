// Package mailer knows addresses and mails: what a recipient's address means,
// what a mail looks like, and how it gets to a relay.
//
// # Addresses
//
// ParseAddress turns what somebody typed into an Address, or refuses it with a
// Reason. An Address has two faces made in one parse: String, which goes to
// RCPT TO, and Key, under which the mailbox's sends are counted. They cannot
// disagree, so nobody gets mail on another mailbox's allowance. Which spellings
// are one mailbox is an Identity: letter case, +tag, and what providers
// document about themselves, kept as data in providers.json.
//
// # Composing
//
// Templates are files, per name and locale, checked when they are loaded. A
// Composer makes a Message of a template and a Request: multipart/alternative,
// seven bits, one header block in a fixed order. Every field of a Request is
// checked before use and the finished octets are checked again, so that no
// field can add a header, a recipient or a second message.
//
// # Relays
//
// Relays hands a Message over and says what became of it: accepted, refused for
// good, certainly never left, or unknown.
//
// The time in a mail is handed in, and no address is written to an error or a
// log: it shows as a short hash.
package mailer
