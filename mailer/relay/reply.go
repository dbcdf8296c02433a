package relay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
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

// replyReader reads replies off a connection.
type replyReader struct {
	*bufio.Reader        // of mostLineBytes
	text          []byte // of the last reply: its lines without their codes, joined by newlines
}

// ahead reports whether the relay has said more than the replies read so far.
func (r *replyReader) ahead() bool { return r.Buffered() > 0 }

// next reads one whole reply of any number of lines. The time it may take is the
// connection's deadline, set once for the whole reply: a trickle of octets does not
// prolong it.
func (r *replyReader) next() (code int, err error) {
	r.text = r.text[:0]
	for total := 0; ; {
		line, err := r.ReadSlice('\n')
		total += len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull), total > mostReplyBytes:
			return 0, errReplyTooBig
		case errors.Is(err, io.EOF):
			return 0, errHungUp
		case err != nil:
			return 0, err
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

// splitReplyLine splits "250-text" or "250 text". It takes a bare "250", as RFC 5321 asks of clients. It also takes a line
// that ends in LF alone, as a delivered email would else be unknown.
func splitReplyLine(line []byte) (code int, more bool, text []byte, ok bool) {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if len(line) < 3 || line[0] < '2' || line[0] > '5' {
		return 0, false, nil, false
	}
	code, err := strconv.Atoi(string(line[:3]))
	if err != nil {
		return 0, false, nil, false
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

// oneLine makes a relay's text printable and puts it on one line.
func oneLine(text string) string {
	first := strings.ToValidUTF8(text[:min(len(text), mostReplyText)], "")
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, first)
}

// enhanced finds RFC 3463's class.subject.detail, before the text or in parentheses after it,
// as qmail writes it. Cisco's gateways have a # before it.
var enhanced = regexp.MustCompile(`^#?([245]\.\d{1,3}\.\d{1,3})(?: |$)|\(#([245]\.\d{1,3}\.\d{1,3})\) *$`)

// newReply makes the reply as callers see it: one line of printable text, with the
// enhanced code taken off its front or end.
func newReply(code int, text []byte) *Reply {
	reply := &Reply{Code: code, Message: oneLine(string(text))}
	if at := enhanced.FindStringSubmatchIndex(reply.Message); at != nil {
		found := reply.Message[max(at[2], at[4]):max(at[3], at[5])]
		if int(found[0]-'0') == code/100 {
			reply.Enhanced = found
			// RFC 2034 repeats the code on every line; once is enough.
			reply.Message = strings.ReplaceAll(reply.Message[:at[0]]+reply.Message[at[1]:], " "+found+" ", " ")
		}
	}
	reply.Message = strings.TrimSpace(reply.Message)
	return reply
}
