package relay

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What a relay offers is read of its lines alone: how it greets, letter case, the order
// of the lines and one said twice make no difference.
func FuzzExtensions(f *testing.F) {
	f.Add("relay.example", "PIPELINING\nSIZE 10\nSTARTTLS\nAUTH PLAIN LOGIN")
	f.Add("STARTTLS", "auth=login\n\n8bitmime")
	f.Add("AUTH PLAIN", "XAUTH PLAIN\nSTARTTLSX\nAUTH")
	f.Fuzz(func(t *testing.T, greeting, rest string) {
		greeting = strings.ReplaceAll(greeting, "\n", " ")
		read := readExtensions("relay\n" + rest)
		lines := strings.Split(rest, "\n")
		backwards := make([]string, 0, 2*len(lines))
		for i := range lines {
			last := lines[len(lines)-1-i]
			backwards = append(backwards, last, last)
		}
		if other := readExtensions(greeting + "\n" + strings.ToUpper(strings.Join(backwards, "\n"))); !reflect.DeepEqual(sorted(other), sorted(read)) {
			t.Fatalf("%q offers %+v, and %+v", rest, read, other)
		}
		if !reflect.DeepEqual(readExtensions(greeting), extensions{}) {
			t.Fatalf("the greeting %q offers something", greeting)
		}
	})
}

// sorted has the ways to log in once each, in order.
func sorted(e extensions) extensions {
	e.auth = slices.Compact(slices.Sorted(slices.Values(e.auth)))
	return e
}
