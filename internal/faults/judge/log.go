package judge

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// alarms are in no log of a healthy program.
var alarms = []string{"DATA RACE", "panic", "fatal error"}

// Log reads what a program has logged, and finds what must not be there: a secret word (a local
// part, a code), a data race, a panic. Only the first few are reported.
func Log(program string, log io.Reader, secret map[string]bool) (found []Violation, err error) {
	lines := bufio.NewReader(log)
	for len(found) < 5 {
		line, err := lines.ReadBytes('\n')
		if complaint := lineComplaint(line, secret); complaint != "" {
			found = append(found, Violation{Rule: "log", What: fmt.Sprintf("%s logged %s: %s", program, complaint, bytes.TrimSpace(line))})
		}
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return found, fmt.Errorf("reading the log of %s: %w", program, err)
		}
	}
	return found, nil
}

// lineComplaint looks in the strings of a JSON line, and in the whole of any other. A number is a
// count or a time, and could equal a code of six digits by chance; so could a part of "time".
func lineComplaint(line []byte, secret map[string]bool) string {
	for _, alarm := range alarms {
		if bytes.Contains(line, []byte(alarm)) {
			return "an alarm"
		}
	}
	complaint, skip := "", false
	for fields := json.NewDecoder(bytes.NewReader(line)); ; {
		field, err := fields.Token()
		if err == io.EOF {
			return complaint
		}
		if err != nil {
			return secretIn(string(line), secret)
		}
		if text, ok := field.(string); ok && !skip {
			complaint, skip = cmp.Or(complaint, secretIn(text, secret)), text == "time"
		} else {
			skip = false
		}
	}
}

// secretIn finds a secret that is a whole word of the text, in any case of letters.
func secretIn(text string, secret map[string]bool) string {
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) {
		if secret[word] {
			return "the secret word " + word
		}
	}
	return ""
}
