package settings

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// fromEnvironment finds the settings among NAME=value pairs. A variable that is empty
// counts as not set, as compose files leave it.
func fromEnvironment(environ []string) (layer, error) {
	known := keys(envName)
	known[envName(config)] = key{setting: Setting{Name: config}}
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, prefix) && !ofOrchestrator(name, value) {
			values[name] = value
		}
	}
	found := layer{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		k, ok := known[name]
		if !ok {
			return nil, &Error{onOneLine(name), "there is no such setting; mailgate help lists them all"}
		}
		if values[name] == "" {
			continue
		}
		if err := found.put(k, Origin{Text: values[name], Place: name, Level: Environment}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// onOneLine quotes a name that would not be read as one word on a terminal.
func onOneLine(name string) string {
	if strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.Quote(name)
	}
	return name
}

// ofService is what Kubernetes and Docker links put behind the name of a service, and
// address is what they call its port, alone.
var (
	ofService = regexp.MustCompile(`^(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|ADDR|START|END|PORT(_START|_END)?))?)$`)
	address   = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// ofOrchestrator reports whether a variable is one that Kubernetes and Docker links put into
// the environment by themselves, as a service happens to be called mailgate or mailgate-redis.
func ofOrchestrator(name, value string) bool {
	rest := strings.TrimPrefix(name, prefix)
	switch {
	case rest == "PORT", rest == "NAME":
		return true
	case strings.HasSuffix(rest, "_PORT") && address.MatchString(value):
		return true
	case strings.HasSuffix(rest, "_NAME") && strings.HasPrefix(value, "/"): // of a linked container
		return true
	}
	return ofService.MatchString(rest)
}
