package message

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The files of a template in one locale. Those of the operator may be any of them, over
// the built-in ones of the same name and locale. expires.txt is also inherited from the
// template "code" in that language.
const (
	subjectFile = "subject.txt"
	textFile    = "text.txt"
	bodyFile    = "body.html"
	expiresFile = "expires.txt"
)

var templateFiles = []string{subjectFile, textFile, bodyFile, expiresFile}

// maxTemplateFile bounds one file. Mail providers clip mails of more than about 100 KB.
const maxTemplateFile = 128 << 10

// sources is the text of each file by name/locale, then file.
type sources map[string]map[string]string

// read adds the templates of a file system over those that are there. Names that start
// with a dot are skipped. Anything else that is not part of a template is an error, since
// it is most likely a misspelt file.
func (s sources) read(files fs.FS) error {
	names, err := directories(files, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return fmt.Errorf("%s: a template's name is up to 64 of a-z, 0-9, - and _", name)
		}
		locales, err := directories(files, name)
		if err != nil {
			return err
		}
		seen := map[string]string{}
		for _, locale := range locales {
			path, normal := name+"/"+locale, normalLocale(locale)
			if !isLocale(normal) {
				return fmt.Errorf("%s: not a locale such as en or zh-Hans", path)
			}
			if other, ok := seen[normal]; ok {
				return fmt.Errorf("%s: the same locale as %s", path, other)
			}
			seen[normal] = path
			if err := s.readLocale(files, path, name+"/"+normal); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s sources) readLocale(files fs.FS, path, into string) error {
	entries, err := readDir(files, path)
	if err != nil {
		return err
	}
	if s[into] == nil {
		s[into] = map[string]string{}
	}
	for _, file := range entries {
		if !slices.Contains(templateFiles, file) {
			return fmt.Errorf("%s/%s: not one of %s", path, file, strings.Join(templateFiles, ", "))
		}
		if s[into][file], err = readTemplateFile(files, path+"/"+file); err != nil {
			return err
		}
	}
	return nil
}

func readTemplateFile(files fs.FS, path string) (string, error) {
	info, err := fs.Stat(files, path)
	if err != nil {
		return "", plainPathError(err)
	}
	if info.Size() > maxTemplateFile {
		return "", fmt.Errorf("%s: longer than %d KiB", path, maxTemplateFile>>10)
	}
	text, err := fs.ReadFile(files, path)
	if err != nil {
		return "", plainPathError(err)
	}
	if !utf8.Valid(text) {
		return "", fmt.Errorf("%s: is not valid UTF-8", path)
	}
	return strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n"), nil
}

// inheritExpiry gives a locale without expires.txt the one of the template "code" in its
// language.
func (s sources) inheritExpiry() {
	words := map[string]string{} // of "code", by locale
	for path, files := range s {
		if locale, ok := strings.CutPrefix(path, DefaultTemplate+"/"); ok && files[expiresFile] != "" {
			words[locale] = files[expiresFile]
		}
	}
	for path, files := range s {
		_, locale, _ := strings.Cut(path, "/")
		text, found := words[nearestLocale(words, locale, "")]
		if _, ok := files[expiresFile]; !ok && found {
			files[expiresFile] = text
		}
	}
}

// digest is of all files.
func (s sources) digest() [sha256.Size]byte {
	whole := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(s)) {
		for _, file := range templateFiles {
			if text, ok := s[path][file]; ok {
				fmt.Fprintf(whole, "%s/%s %d\n%s", path, file, len(text), text)
			}
		}
	}
	return [sha256.Size]byte(whole.Sum(nil))
}

// readDir lists the names in a directory that do not start with a dot.
func readDir(files fs.FS, in string) (names []string, err error) {
	entries, err := fs.ReadDir(files, in)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names, plainPathError(err)
}

// directories is readDir where only directories may be. It follows links, since mounted
// configuration often consists of them.
func directories(files fs.FS, in string) ([]string, error) {
	names, err := readDir(files, in)
	for _, name := range names {
		path := strings.TrimPrefix(in+"/"+name, "./")
		info, err := fs.Stat(files, path)
		if err != nil {
			return nil, plainPathError(err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s: a file where only directories belong (name/locale/%s)", path, subjectFile)
		}
	}
	return names, err
}

// plainPathError is path and cause in the form of the other errors here.
func plainPathError(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", failed.Path, failed.Err)
	}
	return err
}
