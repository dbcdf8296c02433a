package relay

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
)

// The bounds of a reply. RFC 5321 allows 512 octets a line; the longest honest replies
// are EHLO's, far under these.
const (
	mostLineBytes  = 4 << 10
	mostReplyBytes = 64 << 10
)

var (
	errNotSMTP     = errors.New("the answer is not SMTP")
	errReplyTooBig = errors.New("the answer does not end")
	errHungUp      = errors.New("the relay closed the connection")
)

// replyReader reads replies off a connection, with what was read ahead.
type replyReader struct {
	src        io.Reader
	start, end int
	text       []byte
	buf        [mostLineBytes]byte
}

func (r *replyReader) reset(src io.Reader) {
	r.src, r.start, r.end = src, 0, 0
}

// ahead reports whether the relay has said more than the replies read so far.
func (r *replyReader) ahead() bool { return r.end > r.start }

// next reads one whole reply of any number of lines. Its text, the lines
// without their codes joined by newlines, is in r.text until the next call.
// The time it may take is the connection's deadline, set once for the whole
// reply: a trickle of octets does not prolong it.
func (r *replyReader) next() (code int, err error) {
	r.text = r.text[:0]
	for total := 0; ; {
		line, err := r.line()
		if err != nil {
			return 0, err
		}
		if total += len(line); total > mostReplyBytes {
			return 0, errReplyTooBig
		}
		this, more, text, ok := splitReplyLine(line)
		if !ok || (code != 0 && this != code) {
			return 0, errNotSMTP
		}
		if code != 0 {
			r.text = append(r.text, '\n')
		}
		code = this
		r.text = append(r.text, text...)
		if !more {
			return code, nil
		}
	}
}

// line returns the next line with its end, valid until the next read.
func (r *replyReader) line() ([]byte, error) {
	searched := r.start
	for {
		if i := bytes.IndexByte(r.buf[searched:r.end], '\n'); i >= 0 {
			line := r.buf[r.start : searched+i+1]
			r.start = searched + i + 1
			return line, nil
		}
		if r.start > 0 {
			r.end = copy(r.buf[:], r.buf[r.start:r.end])
			r.start = 0
		}
		searched = r.end
		if r.end == len(r.buf) {
			return nil, errReplyTooBig
		}
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				err = errHungUp
			}
			return nil, err
		}
	}
}

// splitReplyLine splits "250-text" or "250 text". It takes a bare "250", as RFC 5321
// asks of clients, and a line that ends in LF alone: to refuse that after the final dot
// would make a delivered mail an unknown one.
func splitReplyLine(line []byte) (code int, more bool, text []byte, ok bool) {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if len(line) < 3 || line[0] < '2' || line[0] > '5' {
		return 0, false, nil, false
	}
	for _, c := range line[:3] {
		if c < '0' || c > '9' {
			return 0, false, nil, false
		}
		code = code*10 + int(c-'0')
	}
	switch {
	case len(line) == 3:
		return code, false, nil, true
	case line[3] == ' ' || line[3] == '-':
		return code, line[3] == '-', line[4:], true
	}
	return 0, false, nil, false
}

// mostReplyText is how much of a relay's text is passed on.
const mostReplyText = 512

// oneLine is text of a relay as it may be shown: printable, on one line.
func oneLine(text string) string {
	first := strings.ToValidUTF8(text[:min(len(text), mostReplyText)], "")
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, first)
}

// newReply makes the reply as callers see it: one line of printable text, with the
// enhanced code taken off its front or end.
func newReply(code int, text []byte) *Reply {
	reply := &Reply{Code: code}
	message := oneLine(string(text))
	if first, rest, _ := strings.Cut(message, " "); isEnhanced(strings.TrimPrefix(first, "#"), code) {
		// RFC 2034 repeats the code on every line; once is enough.
		reply.Enhanced = strings.TrimPrefix(first, "#")
		message = strings.ReplaceAll(rest, " "+first+" ", " ")
	} else if rest, enhanced, ok := endsInCode(message); ok && isEnhanced(enhanced, code) {
		reply.Enhanced, message = enhanced, rest
	}
	reply.Message = strings.TrimSpace(message)
	return reply
}

// endsInCode splits "no mailbox here (#5.1.1)", as qmail writes it, which is older than
// RFC 2034. Cisco's gateways have its # where the code comes first.
func endsInCode(message string) (rest, code string, ok bool) {
	at := strings.LastIndex(message, "(#")
	if at < 0 {
		return message, "", false
	}
	code, ok = strings.CutSuffix(strings.TrimSpace(message[at+len("(#"):]), ")")
	return message[:at], code, ok
}

// isEnhanced recognizes RFC 3463's class.subject.detail, of the same class as
// the reply's code.
func isEnhanced(s string, code int) bool {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || len(parts[0]) != 1 || int(parts[0][0]-'0') != code/100 {
		return false
	}
	for _, part := range parts[1:] {
		if len(part) < 1 || len(part) > 3 || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return true
}
