package mailer

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
)

// letter is a checked Message in wire form, made once a send whatever number
// of relays see it.
type letter struct {
	id       string
	from, to string
	claim           // whose shares of the connections it takes
	size     int    // octets before dot-stuffing, for SIZE=
	eightBit bool   // some octet is above 127
	wire     []byte // dot-stuffed, with the final CRLF.CRLF
	leaving  func(context.Context) error
}

var letters = sync.Pool{New: func() any { return new(letter) }}

// prepare checks everything that goes on the wire. It trusts no caller: what
// passes here can be no command and end no mail early.
func prepare(m *Message) (*letter, error) {
	if why := unfitPath(m.From); why != "" {
		return nil, unsendable("envelope sender: " + why)
	}
	if why := unfitPath(m.To); why != "" {
		return nil, unsendable("envelope recipient: " + why)
	}
	l := letters.Get().(*letter)
	l.id, l.from, l.to = m.ID, m.From, m.To
	l.claim.caller, l.claim.domain = m.Caller, RegisteredDomain(m.To[strings.IndexByte(m.To, '@')+1:])
	l.size, l.eightBit, l.leaving = len(m.Bytes), eightBit(m.Bytes), m.Leaving
	var why string
	if l.wire, why = stuff(l.wire[:0], m.Bytes); why != "" {
		l.free()
		return nil, unsendable(why)
	}
	return l, nil
}

// mostKeptWire keeps one great mail from pinning its memory for good.
const mostKeptWire = 64 << 10

func (l *letter) free() {
	if cap(l.wire) > mostKeptWire {
		l.wire = nil
	}
	l.id, l.from, l.to, l.claim = "", "", "", claim{}
	l.leaving = nil
	letters.Put(l)
}

// mayLeave asks whoever sends it whether the mail may leave now.
func (l *letter) mayLeave(p patience) error {
	if l.leaving == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(p.ctx, p.until)
	defer cancel()
	if err := l.leaving(ctx); err != nil {
		return fmt.Errorf("%w: %w", errHeldBack, err)
	}
	return nil
}

// unfitPath says why an address may not stand in MAIL FROM:<> or RCPT TO:<>,
// or nothing if it may. Quotes, backslashes, commas and colons are legal mail
// but the stuff of smuggled parameters and source routes; no mail of ours has
// them. An address never occurs in the answer.
func unfitPath(address string) string {
	if address == "" || len(address) > maxAddress {
		return "must be 1 to 254 octets"
	}
	ats := 0
	for i := range len(address) {
		switch c := address[i]; c {
		case '@':
			ats++
		case '<', '>', '(', ')', '[', ']', '"', '\\', ',', ';', ':':
			return "has a character that addresses on the wire may not have"
		default:
			if c <= ' ' || c >= 0x7f {
				return "has a space, a control character or one beyond ASCII"
			}
		}
	}
	if ats != 1 || address[0] == '@' || address[len(address)-1] == '@' {
		return "must be one name, one @ and one domain"
	}
	return ""
}

// stuff appends text to out as DATA wants it: dots doubled at the start of
// lines, CRLF at the end and the final dot after it. It says why instead when
// a CR or LF stands alone (servers differ in what they take for a line end,
// and the difference smuggles mail), at a NUL, an overlong line and at nothing at all.
func stuff(out, text []byte) (wire []byte, why string) {
	if len(text) == 0 {
		return out, "it is empty"
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return out, "it holds a NUL"
	}
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line = text[:i+1]
		}
		text = text[len(line):]
		cr := bytes.IndexByte(line, '\r')
		if line[len(line)-1] != '\n' {
			if cr >= 0 {
				return out, "it holds a bare CR"
			}
		} else if cr != len(line)-2 || cr < 0 {
			return out, "it holds a bare CR or LF"
		}
		if len(bytes.TrimSuffix(line, []byte("\r\n"))) > maxLine {
			return out, "it has a line of more than 998 octets"
		}
		if line[0] == '.' {
			out = append(out, '.')
		}
		out = append(out, line...)
	}
	if !bytes.HasSuffix(out, []byte("\r\n")) {
		out = append(out, "\r\n"...)
	}
	return append(out, ".\r\n"...), ""
}

// eightBit says whether any octet is above 127, eight at a time.
func eightBit(text []byte) bool {
	const high = 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		if binary.LittleEndian.Uint64(text)&high != 0 {
			return true
		}
	}
	for _, c := range text {
		if c > 127 {
			return true
		}
	}
	return false
}
