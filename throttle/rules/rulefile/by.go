package rulefile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/mailgate/mailgate/internal/yamlfile"
	"github.com/mailgate/mailgate/throttle/rules"
)

// byText is what a rule counts by, as it is written: a trait, or a list of two.
type byText []string

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (b *byText) UnmarshalYAML(node ast.Node) error {
	var v yamlfile.Value
	if err := v.UnmarshalYAML(node); err != nil {
		return err
	}
	*b = strings.Split(v.Text, ",")
	return nil
}

func (b byText) read() (rules.By, error) {
	all := rules.Bys()
	oneOf := "it must be one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
	switch {
	case len(b) == 0:
		return "", refuse("", "by is missing; %s", oneOf)
	case len(b) > 2 || slices.ContainsFunc(b, func(one string) bool { return !slices.Contains(all, rules.By(one)) }):
		return "", refuse("by", "%s, or a list of two", oneOf)
	case len(b) == 1:
		return rules.By(b[0]), nil
	}
	pair, ok := rules.Pair(rules.By(b[0]), rules.By(b[1]))
	if !ok {
		return "", refuse("by", "the two must differ, and all is no trait of some sends")
	}
	return pair, nil
}
