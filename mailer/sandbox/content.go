package sandbox

import (
	"bufio"
	"bytes"
	"errors"
)

var (
	errTooBig      = errors.New("mail too big")
	errBareLineEnd = errors.New("bare CR or LF in mail")
)

// readContent reads a mail up to its final CRLF.CRLF and undoes the
// dot-stuffing. A mail that is too big or has a CR or LF on its own is read
// to its end all the same, so that the conversation stays in step, and
// reported then. Only CRLF ends a line: "\n.\n" or "\n.\r\n" end no mail.
func readContent(in *bufio.Reader, most int) ([]byte, error) {
	var content []byte
	var fault error
	lineStart, afterCR := true, false
	for {
		piece, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if lineStart && bytes.Equal(piece, []byte(".\r\n")) {
			return content, fault
		}
		if bare(piece, afterCR) {
			fault = errBareLineEnd
		}
		text := piece
		if lineStart && piece[0] == '.' {
			text = piece[1:]
		}
		lineStart = bytes.HasSuffix(piece, []byte("\r\n")) || afterCR && piece[0] == '\n'
		afterCR = piece[len(piece)-1] == '\r'
		if len(content)+len(text) > most {
			fault = errTooBig
			continue
		}
		content = append(content, text...)
	}
}

// bare says whether a piece, which ends at its first LF or without one, has a
// CR or LF that is not part of a CRLF. A CR that ends the piece is judged
// with the next.
func bare(piece []byte, afterCR bool) bool {
	if afterCR && piece[0] != '\n' {
		return true
	}
	cr := bytes.IndexByte(piece, '\r')
	if piece[len(piece)-1] != '\n' {
		return cr >= 0 && cr != len(piece)-1
	}
	if len(piece) == 1 {
		return !afterCR
	}
	return cr != len(piece)-2
}
