package rulefile

import (
	"bytes"
	"cmp"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mailgate/mailgate/internal/boundedfile"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/yamlfile"
	"github.com/mailgate/mailgate/throttle/rules"
)

// maxList is the largest list, in bytes: a million domains.
const maxList = 32 << 20

// addFile adds what a file lists: a domain, a mailbox or a network on each line, and comments from a # on.
// This is how lists of disposable domains are published.
func addFile(to *rules.Some, path string, w words) error {
	text, err := boundedfile.Read(path, maxList)
	if err != nil {
		return wrongIn("file", err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors write this mark
	number, before := 0, len(to.Mailboxes)+len(to.Domains)+len(to.Networks)
	wrong := func(problem string) error { return &yamlfile.Error{File: path, Line: number, Problem: problem} }
	for line := range strings.Lines(string(text)) {
		number++
		if !strings.HasSuffix(line, "\n") {
			return wrong("the last line has no line break, so the file may be cut off; add it if it is not")
		}
		if !utf8.ValidString(line) || strings.ContainsFunc(strings.TrimRight(line, "\r\n"), notInList) {
			return wrong("this is not text")
		}
		entry, _, _ := strings.Cut(line, "#")
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		if err := addEntry(to, entry, w); err != nil {
			return wrong(err.Error())
		}
	}
	if len(to.Mailboxes)+len(to.Domains)+len(to.Networks) == before {
		return wrong("it lists nothing")
	}
	to.Mailboxes, to.Domains = sorted(to.Mailboxes, cmp.Compare), sorted(to.Domains, cmp.Compare)
	to.Networks = sorted(to.Networks, netip.Prefix.Compare)
	return nil
}

func notInList(c rune) bool { return c != '\t' && unicode.IsControl(c) }

// addEntry adds what one line lists.
func addEntry(to *rules.Some, entry string, w words) (err error) {
	var mailbox, domain string
	var p netip.Prefix
	if strings.Contains(entry, "@") {
		mailbox, err = w.pattern(entry)
		to.Mailboxes = append(to.Mailboxes, mailbox)
	} else if _, no := network.Parse(entry); no == nil {
		p, err = w.network(entry)
		to.Networks = append(to.Networks, p)
	} else {
		domain, err = w.domain(entry)
		to.Domains = append(to.Domains, domain)
	}
	return err
}
