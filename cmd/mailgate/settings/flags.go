package settings

import (
	"fmt"
	"strings"
)

// fromFlags takes the flags of settings out of a command line. Arguments may stand
// before, between and after them; after -- everything is an argument.
func fromFlags(args []string) (layer, []string, error) {
	found, rest := layer{}, []string{}
	known := keys(flagName)
	known[config] = key{setting: Setting{Name: config}}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if word == "--" {
			return found, append(rest, args...), nil
		}
		if !strings.HasPrefix(word, "-") || word == "-" {
			rest = append(rest, word)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		k, ok := known[name]
		if !ok {
			return nil, nil, fmt.Errorf("there is no flag --%s; mailgate help lists them all", name)
		}
		if !hasValue {
			switch {
			case k.setting.Switch:
				value = "true"
			case len(args) == 0:
				return nil, nil, &Error{"--" + name, "it needs a value"}
			default:
				value, args = args[0], args[1:]
			}
		}
		if value == "" {
			return nil, nil, &Error{"--" + name, "it needs a value"}
		}
		if err := found.put(k, Origin{Text: value, Place: "--" + name, Level: Flag}); err != nil {
			return nil, nil, err
		}
	}
	return found, rest, nil
}
