package settings

import (
	"errors"
	"strings"

	"github.com/mailgate/mailgate/boundedfile"
	"github.com/mailgate/mailgate/strictyaml"
)

// maxFile bounds the settings file.
const maxFile = 1 << 20

// fromFile reads the settings in a YAML file: one mapping of names to values, or to
// lists of values.
func fromFile(config Origin) (layer, error) {
	text, err := boundedfile.Read(config.Text, maxFile)
	if err != nil {
		return nil, &Error{config.Place, err.Error()}
	}
	pairs, err := lines(config.Text, text)
	if err != nil {
		return nil, fileError(err)
	}
	known := keys(func(name string) string { return name })
	found := layer{}
	for _, pair := range pairs {
		k, ok := known[pair.Name]
		if !ok {
			return nil, fileError(pair.Value.Refuse("there is no such setting; mailgate help lists them all"))
		}
		value, err := plainText(pair.Value)
		if err != nil {
			return nil, fileError(err)
		}
		if value == "" {
			continue
		}
		if err := found.put(k, Origin{Text: value, Place: pair.Value.Place.String(), Level: File}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func lines(path string, text []byte) ([]strictyaml.Pair, error) {
	root, err := strictyaml.Parse(path, text)
	if err != nil || !root.Given() {
		return nil, err
	}
	return root.Mapping()
}

// plainText is a value as it was written, or the values of a list with commas between
// them. It is empty if nothing is given.
func plainText(value strictyaml.Value) (string, error) {
	if !value.Given() {
		return "", nil
	}
	if !value.IsSequence() {
		return value.Plain()
	}
	entries, err := value.Sequence()
	if err != nil {
		return "", err
	}
	all := make([]string, len(entries))
	for i, entry := range entries {
		if all[i], err = entry.Plain(); err != nil {
			return "", value.Refuse("a list may only hold plain values")
		}
	}
	return strings.Join(all, ","), nil
}

// fileError makes a mistake in the file one of settings.
func fileError(err error) error {
	var wrong *strictyaml.Error
	if errors.As(err, &wrong) {
		return &Error{wrong.Place.String(), wrong.Problem}
	}
	return err
}
