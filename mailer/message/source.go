package message

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
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

// maxTemplateFile bounds one file. Mail providers clip emails of more than about 100 KB.
const maxTemplateFile = 128 << 10

// sources is the text of each file by name/locale, then file.
type sources map[string]map[string]string

// read adds the templates of a file system over those that are there. Anything that is not
// part of a template is an error, since it is most likely a misspelt file.
func (s sources) read(files fs.FS) error {
	return each(files, ".", func(name string) error {
		if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return fmt.Errorf("%s: a template's name is up to 64 of a-z, 0-9, - and _", name)
		}
		seen := map[string]string{}
		return each(files, name, func(locale string) error {
			path, normal := name+"/"+locale, normalLocale(locale)
			if !isLocale(normal) {
				return fmt.Errorf("%s: not a locale such as en or zh-Hans", path)
			}
			if other, ok := seen[normal]; ok {
				return fmt.Errorf("%s: the same locale as %s", path, other)
			}
			seen[normal] = path
			return s.readLocale(files, path, name+"/"+normal)
		})
	})
}

func (s sources) readLocale(files fs.FS, path, into string) error {
	if s[into] == nil {
		s[into] = map[string]string{}
	}
	return each(files, path, func(file string) (err error) {
		if !slices.Contains(templateFiles, file) {
			return fmt.Errorf("%s/%s: not one of %s", path, file, strings.Join(templateFiles, ", "))
		}
		s[into][file], err = readTemplateFile(files, path+"/"+file)
		return err
	})
}

// each calls read for the names in a directory that do not start with a dot. It follows links,
// since mounted configuration often consists of them.
func each(files fs.FS, in string, read func(name string) error) error {
	info, err := fs.Stat(files, in)
	if err != nil {
		return plainPathError(err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: a file among directories (expected name/locale/%s)", in, subjectFile)
	}
	entries, err := fs.ReadDir(files, in)
	if err != nil {
		return plainPathError(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := read(entry.Name()); err != nil {
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

// locales returns those of a template, sorted.
func (s sources) locales(of string) (all []string) {
	for path := range s {
		if name, locale, _ := strings.Cut(path, "/"); name == of {
			all = append(all, locale)
		}
	}
	slices.Sort(all)
	return all
}

// digest hashes all files; fmt prints maps in order.
func (s sources) digest() [sha256.Size]byte { return sha256.Sum256(fmt.Appendf(nil, "%q", s)) }

// plainPathError formats path and cause as the other errors here.
func plainPathError(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", failed.Path, failed.Err)
	}
	return err
}
