package mailer

import "strings"

// shown is an address as the text of a mail shows it: as typed, or without its
// local part if that holds a mark other than . + - and _.
//
// Whoever types an address chooses what it says: all that follows a +, or all
// of it where a domain takes any name. Mail readers make links of what looks
// like one, and victim+www.evil.example/login@example.com would put one into
// an honest sender's mail. Without further marks the whole stays an address to
// them.
func shown(a Address) string {
	wire := a.String()
	at := strings.IndexByte(wire, '@')
	if isWord(wire[:at], ".+-_") {
		return wire
	}
	return "…" + wire[at:]
}
