package message

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mailgate/mailgate/internal/yamlfile"
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

// settingsFile has the settings of a template, of all its locales. It may be left out.
const settingsFile = "template.yaml"

// settings are those of a template.
type settings struct {
	// Critical emails reach an address that bounced, once a day.
	Critical bool `yaml:"critical"`
	// From and ReplyTo are senders, as in the settings of the program. An empty From is that one.
	From    string            `yaml:"from"`
	ReplyTo string            `yaml:"reply_to"`
	Headers map[string]string `yaml:"headers"`

	from  Sender
	lines []byte // the header fields Reply-To and Headers
}

var templateFiles = []string{subjectFile, textFile, bodyFile, expiresFile}

// maxTemplateFile bounds one file. Mail providers clip emails of more than about 100 KB.
const maxTemplateFile = 128 << 10

// sources is what was read, by name and normal locale, as in code/pt-br.
type sources map[string]*source

// source is one template in one locale.
type source struct {
	path  string // as the operator wrote it: code/pt_BR
	files map[string]file
}

// file is one file of a template. Its path is for errors.
type file struct{ path, text string }

// read adds the templates of a file system over those that are there. Anything that is not
// part of a template is an error, since it is most likely a misspelt file.
func (s sources) read(files fs.FS) error {
	return each(files, ".", func(name string) error {
		if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return fmt.Errorf("%s: a template's name is up to 64 of a-z, 0-9, - and _", name)
		}
		seen := map[string]string{}
		return each(files, name, func(locale string) error {
			if locale == settingsFile {
				return nil
			}
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
		s[into] = &source{files: map[string]file{}}
	}
	s[into].path = path
	return each(files, path, func(name string) error {
		if !slices.Contains(templateFiles, name) {
			return fmt.Errorf("%s/%s: not one of %s", path, name, strings.Join(templateFiles, ", "))
		}
		text, err := readTemplateFile(files, path+"/"+name)
		s[into].files[name] = file{path + "/" + name, text}
		return err
	})
}

// read reads the settings of a template from a file system, which may be nil.
func (s *settings) read(files fs.FS, name string) error {
	if files == nil {
		return nil
	}
	path := name + "/" + settingsFile
	text, err := readTemplateFile(files, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := yamlfile.Decode(path, []byte(text), s)
	if err != nil {
		return err
	}
	if part, err := s.prepare(); err != nil {
		return file.Wrong("$."+part, part+": "+err.Error())
	}
	return nil
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
	words := map[string]file{} // of "code", by locale
	for path, from := range s {
		if locale, ok := strings.CutPrefix(path, DefaultTemplate+"/"); ok && from.files[expiresFile].text != "" {
			words[locale] = from.files[expiresFile]
		}
	}
	for path, to := range s {
		_, locale, _ := strings.Cut(path, "/")
		inherited, found := words[nearestLocale(words, locale, "")]
		if _, ok := to.files[expiresFile]; !ok && found {
			to.files[expiresFile] = inherited
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

// digest hashes all files.
func (s sources) digest() [sha256.Size]byte {
	texts := map[string]map[string]file{}
	for path, from := range s {
		texts[path] = from.files
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q", texts)) // fmt prints maps in order
}

// plainPathError formats path and cause as the other errors here.
func plainPathError(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", failed.Path, failed.Err)
	}
	return err
}
