package settings

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/mailgate/mailgate/boundedfile"
)

// An Error is a setting that cannot be right: one line that names it as it was given.
type Error struct {
	Place   string // "--tiers", "MAILGATE_TIERS", "mailgate.yaml:3: tiers"
	Problem string
}

func (e *Error) Error() string { return e.Place + ": " + e.Problem }

// ownWords drops the name of the package that found a problem: it tells an operator
// nothing that the place does not.
func ownWords(problem string) string { return strings.TrimPrefix(problem, "mailer: ") }

// Read finds the settings in the flags of a command line, the environment and the
// file that one of them names, and checks them. Of the command line it takes what
// are flags of settings and returns the rest.
func Read(args, environ []string) (*Settings, []string, error) {
	flags, rest, err := fromFlags(args)
	if err != nil {
		return nil, nil, err
	}
	env, err := fromEnvironment(environ)
	if err != nil {
		return nil, nil, err
	}
	file := layer{}
	if from := cmp.Or(flags[config], env[config]); from.Text != "" {
		if file, err = fromFile(from); err != nil {
			return nil, nil, err
		}
	}
	s, err := settle(file, env, flags)
	return s, rest, err
}

// ReadFlags finds the settings on the command line alone: neither the environment nor
// a file has a say. What the command line does not set is taken from the given texts
// and then from the defaults.
func ReadFlags(args []string, instead map[string]string) (*Settings, []string, error) {
	flags, rest, err := fromFlags(args)
	if err != nil {
		return nil, nil, err
	}
	if config, ok := flags[config]; ok {
		return nil, nil, &Error{config.Place, "this command reads no settings file"}
	}
	base := layer{}
	for name, text := range instead {
		base[name] = Origin{Text: text, Place: name, Level: Default}
	}
	s, err := settle(base, flags)
	return s, rest, err
}

// A layer is what one place has to say, by the names of settings, and the path of the
// settings file under config.
type layer map[string]Origin

// config is the one name that is a setting in no file: where the file is.
const config = "config"

// settle takes each setting from the last layer that has it, and checks the whole.
func settle(layers ...layer) (*Settings, error) {
	s := &Settings{origins: map[string]Origin{}}
	for _, setting := range Catalogue() {
		origin := Origin{Text: setting.Default, Place: setting.Name}
		for _, l := range layers {
			if found, ok := l[setting.Name]; ok {
				origin = found
			}
		}
		s.origins[setting.Name] = origin
		if origin.Text == "" {
			continue
		}
		field := reflect.ValueOf(s).Elem().Field(setting.field)
		if err := read(field.Addr().Interface(), origin.Text); err != nil {
			return nil, &Error{origin.Place, ownWords(err.Error())}
		}
		if setting.Secret {
			origin.Text = mask
			s.origins[setting.Name] = origin
		}
	}
	s.beStrict()
	return s, s.check()
}

// beStrict sets on_store_outage to refuse where it is not given and continue could not be kept to:
// where replicas have to confirm, or the process would forget its own history with a restart.
func (s *Settings) beStrict() {
	outage := s.origins["on_store_outage"]
	if !outage.Given() && (s.RedisConfirm > 0 || s.RedisURL != "" && !s.hasDataDir()) {
		s.OnStoreOutage, outage.Text = "refuse", "refuse"
		s.origins["on_store_outage"] = outage
	}
}

// put adds what was given for a key, reading the file that holds a secret.
func (l layer) put(k key, given Origin) error {
	name := k.setting.Name
	if before, ok := l[name]; ok {
		return &Error{given.Place, "it was already set by " + before.Place}
	}
	if k.inFile {
		secret, err := readSecret(given.Text)
		if err != nil {
			return &Error{given.Place, err.Error()}
		}
		given.Text = secret
	}
	if strings.ContainsFunc(given.Text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return &Error{given.Place, "it must be one line without control characters"}
	}
	l[name] = given
	return nil
}

// maxSecret bounds the files that secrets are read from.
const maxSecret = 64 << 10

// readSecret reads a secret from its file, without the newline that editors add.
func readSecret(path string) (string, error) {
	text, err := boundedfile.Read(path, maxSecret)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("the file %s is empty", path)
	}
	return secret, nil
}
