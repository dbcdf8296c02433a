package redistest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The proxy counts in whole commands and whole replies, so it has to know where
// each one ends in the stream. These functions read exactly one, however TCP
// has cut it up, and keep its bytes as they came.

// readReply reads one reply or, in RESP3, one push: a message nobody asked for.
func readReply(in *bufio.Reader) (frame []byte, push bool, err error) {
	frame, err = readValue(in, nil)
	return frame, len(frame) > 0 && frame[0] == '>', err
}

// readValue appends one RESP2 or RESP3 value to frame, with all it contains.
func readValue(in *bufio.Reader, frame []byte) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return frame, err
	}
	frame = append(frame, line...)
	switch line[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		return frame, nil
	case '$', '=', '!':
		size, err := readSize(line)
		if err != nil || size < 0 { // "$-1" is a null
			return frame, err
		}
		return readBulk(in, frame, size)
	case '*', '~', '>':
		return readValues(in, frame, line, 1, 0)
	case '%':
		return readValues(in, frame, line, 2, 0)
	case '|': // attributes stand before the value they belong to
		return readValues(in, frame, line, 2, 1)
	}
	return frame, notRESP(line)
}

// readValues appends the values that line announces: each times its number, and
// extra.
func readValues(in *bufio.Reader, frame, line []byte, each, extra int) ([]byte, error) {
	count, err := readSize(line)
	for left := count*each + extra; left > 0 && err == nil; left-- {
		frame, err = readValue(in, frame)
	}
	return frame, err
}

// readBulk appends size bytes and the line end after them.
func readBulk(in *bufio.Reader, frame []byte, size int) ([]byte, error) {
	start := len(frame)
	frame = append(frame, make([]byte, size+2)...)
	_, err := io.ReadFull(in, frame[start:])
	return frame, err
}

// readSize reads the number of a line such as "$12".
func readSize(line []byte) (int, error) {
	const most = 512 << 20 // as in Redis
	size, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	if err != nil || size > most {
		return 0, notRESP(line)
	}
	return size, nil
}

// readCommands reads a command and all that were sent along with it, and gives
// their bytes and names in upper case. A client that pipelines sends its
// commands in one go, so they are handed on in one go too.
//
// With an error come the commands that were complete before it.
func readCommands(in *bufio.Reader) (batch []byte, names []string, err error) {
	for {
		frame, name, err := readCommand(in)
		if err != nil {
			return batch, names, err
		}
		batch = append(batch, frame...)
		if name != "" {
			names = append(names, name)
		}
		if in.Buffered() == 0 {
			return batch, names, nil
		}
	}
}

// readCommand reads one command: an array of bulk strings or a typed line. An
// empty one has no name and gets no reply.
func readCommand(in *bufio.Reader) (frame []byte, name string, err error) {
	frame, err = in.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	if frame[0] != '*' {
		if words := strings.Fields(string(frame)); len(words) > 0 {
			name = strings.ToUpper(words[0])
		}
		return frame, name, nil
	}
	words, err := readSize(frame)
	for i := 0; i < words && err == nil; i++ {
		var word []byte
		if frame, word, err = readWord(in, frame); i == 0 {
			name = strings.ToUpper(string(word))
		}
	}
	return frame, name, err
}

// readWord appends one word of a command and gives it by itself too.
func readWord(in *bufio.Reader, frame []byte) (_, word []byte, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return frame, nil, err
	}
	frame = append(frame, line...)
	size, err := readSize(line)
	if err != nil || line[0] != '$' || size < 0 {
		return frame, nil, notRESP(line)
	}
	start := len(frame)
	frame, err = readBulk(in, frame, size)
	if err != nil {
		return frame, nil, err
	}
	return frame, frame[start : start+size], nil
}

type protocolError struct{ line string }

func (e protocolError) Error() string {
	return fmt.Sprintf("%q is not the Redis protocol", e.line)
}

func notRESP(line []byte) error {
	return protocolError{string(line[:min(len(line), 20)])}
}
