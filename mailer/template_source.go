package mailer

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

// The files of a template in one locale. An operator may give any of them and
// inherit the rest from the built-in template of the same name and locale;
// expires.txt is also inherited from the built-in "code" in that language.
const (
	subjectFile = "subject.txt"
	textFile    = "text.txt"
	bodyFile    = "body.html"
	expiresFile = "expires.txt"
)

// maxTemplateFile bounds one file. Mail providers clip what is longer than
// about 100 KB.
const maxTemplateFile = 128 << 10

func templateFiles() []string { return []string{subjectFile, textFile, bodyFile, expiresFile} }

// templateSources is the text of every file, by template name, locale, file.
type templateSources map[string]map[string]map[string]string

// read adds what a file system holds, over what is there. Names that start
// with a dot are not looked at; anything else that is not part of a template
// is an error, since it is most likely a misspelt file.
func (s templateSources) read(files fs.FS) error {
	names, err := directories(files, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isName(name) {
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
			if err := s.readLocale(files, path, name, normal); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s templateSources) readLocale(files fs.FS, path, name, locale string) error {
	entries, err := fs.ReadDir(files, path)
	if err != nil {
		return plainPathError(err)
	}
	for _, entry := range entries {
		file := entry.Name()
		if strings.HasPrefix(file, ".") {
			continue
		}
		if !slices.Contains(templateFiles(), file) {
			return fmt.Errorf("%s/%s: not one of %s", path, file, strings.Join(templateFiles(), ", "))
		}
		text, err := readTemplateFile(files, path+"/"+file)
		if err != nil {
			return err
		}
		s.put(name, locale, file, text)
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
	plain := strings.TrimPrefix(string(text), "\ufeff")
	return strings.ReplaceAll(plain, "\r\n", "\n"), nil
}

func (s templateSources) put(name, locale, file, text string) {
	if s[name] == nil {
		s[name] = map[string]map[string]string{}
	}
	if s[name][locale] == nil {
		s[name][locale] = map[string]string{}
	}
	s[name][locale][file] = text
}

// inheritExpiry gives a locale without expires.txt the words that the template
// "code" has for its language.
func (s templateSources) inheritExpiry() {
	for _, locales := range s {
		for locale, files := range locales {
			if _, ok := files[expiresFile]; ok {
				continue
			}
			near := nearestLocale(s[DefaultTemplate], locale, "")
			if text, ok := s[DefaultTemplate][near][expiresFile]; ok {
				files[expiresFile] = text
			}
		}
	}
}

// digest is of all that was read.
func (s templateSources) digest() [sha256.Size]byte {
	whole := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		for _, locale := range slices.Sorted(maps.Keys(s[name])) {
			for _, file := range templateFiles() {
				if text, ok := s[name][locale][file]; ok {
					fmt.Fprintf(whole, "%s/%s/%s %d\n%s", name, locale, file, len(text), text)
				}
			}
		}
	}
	return [sha256.Size]byte(whole.Sum(nil))
}

// directories lists the directories in one, following links, as mounted
// configuration often consists of them.
func directories(files fs.FS, in string) ([]string, error) {
	entries, err := fs.ReadDir(files, in)
	if err != nil {
		return nil, plainPathError(err)
	}
	var names []string
	for _, entry := range entries {
		path := entry.Name()
		if strings.HasPrefix(path, ".") {
			continue
		}
		if in != "." {
			path = in + "/" + path
		}
		info, err := fs.Stat(files, path)
		if err != nil {
			return nil, plainPathError(err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s: a file where only directories belong (name/locale/%s)", path, subjectFile)
		}
		names = append(names, entry.Name())
	}
	return names, nil
}

// plainPathError says path and cause in the form of the other errors here.
func plainPathError(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", failed.Path, failed.Err)
	}
	return err
}

func isName(name string) bool {
	return len(name) >= 1 && len(name) <= 64 &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
