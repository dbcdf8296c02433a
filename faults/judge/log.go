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

func lineComplaint(line []byte, secret map[string]bool) string {
	for _, alarm := range alarms {
		if bytes.Contains(line, []byte(alarm)) {
			return "an alarm"
		}
	}
	var fields map[string]any
	if json.Unmarshal(line, &fields) != nil {
		return secretIn(string(line), secret)
	}
	delete(fields, "time")
	return secretAnywhere(fields, secret)
}

// secretAnywhere finds a secret in any field of a line. A number is a count or a time, and
// could equal a code of six digits by chance.
func secretAnywhere(value any, secret map[string]bool) string {
	switch v := value.(type) {
	case string:
		return secretIn(v, secret)
	case []any:
		for _, one := range v {
			if complaint := secretAnywhere(one, secret); complaint != "" {
				return complaint
			}
		}
	case map[string]any:
		for name, one := range v {
			if complaint := cmp.Or(secretIn(name, secret), secretAnywhere(one, secret)); complaint != "" {
				return complaint
			}
		}
	}
	return ""
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
