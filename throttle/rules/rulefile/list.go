package rulefile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mailgate/mailgate/internal/boundedfile"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/yamlfile"
	"github.com/mailgate/mailgate/throttle/rules"
)

// maxList is the largest list, in bytes: a million domains. Of so many entries one may be a public suffix.
const (
	maxList     = 32 << 20
	perSuffixes = 100
)

// namesText is what a denial or an override is for, as it is written.
type namesText struct {
	Some someText `yaml:",inline"`
	File string   `yaml:"file"`
}

// read returns a case for the names, and those that the file lists.
func (t namesText) read(r *reader, name naming) (c rules.Case, err error) {
	c = rules.Case{File: filepath.Base(r.path), List: t.File}
	if c.Some, err = t.Some.read(name, ""); err != nil {
		return c, err
	}
	if t.File != "" {
		path := t.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(r.path), path)
		}
		err = r.addFile(c.Some, path, name)
	}
	if err == nil && c.Some.None() {
		err = refuse("", "it names nothing; give it mailboxes, domains, networks, api_keys or a file")
	}
	return c, err
}

// addFile adds what a file lists: a domain, a mailbox or a network on each line, and comments from a # on.
// This is how lists of disposable domains are published. Some of them have a public suffix, which is left out with a note.
func (f *File) addFile(to rules.Some, path string, read naming) error {
	text, err := boundedfile.Read(path, maxList)
	if err != nil {
		return wrongIn("file", err)
	}
	f.Lists = append(f.Lists, path)
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors write this mark
	control := func(c rune) bool { return c != '\t' && unicode.IsControl(c) }
	number, entries, suffixes := 0, 0, 0
	wrong := func(problem string) error { return &yamlfile.Error{File: path, Line: number, Problem: problem} }
	var suffix error // the first
	for line := range strings.Lines(string(text)) {
		number++
		if !strings.HasSuffix(line, "\n") {
			return wrong("the last line has no line break, so the file may be cut off; add it if it is not")
		}
		if !utf8.ValidString(line) || strings.ContainsFunc(strings.TrimRight(line, "\r\n"), control) {
			return wrong("this is not text")
		}
		entry, _, _ := strings.Cut(line, "#")
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		entries++
		by := rules.ByDomain
		if strings.Contains(entry, "@") {
			by = rules.ByMailbox
		} else if _, no := network.Parse(entry); no == nil {
			by = rules.ByClientIP
		}
		name, err := read(by, entry)
		switch {
		case errors.Is(err, errSuffix):
			suffixes++
			suffix = cmp.Or(suffix, wrong(err.Error()))
		case err != nil:
			return wrong(err.Error())
		default:
			to[by] = append(to[by], rules.Name{Text: name, Line: int32(number), Listed: true})
		}
	}
	switch {
	case entries == 0:
		return wrong("it lists nothing")
	case suffixes*perSuffixes > entries:
		return suffix
	case suffixes > 0:
		f.Notes = append(f.Notes, fmt.Sprintf("%s: %d of %d entries are left out, as they are whole public suffixes", path, suffixes, entries))
	}
	tidy(to)
	return nil
}
