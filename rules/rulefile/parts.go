package rulefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/strictyaml"
	"github.com/mailgate/mailgate/throttle"
)

// parts is a mapping of the file, by the names in it.
type parts struct {
	whole  strictyaml.Value
	byName map[string]strictyaml.Value
}

// readParts reads the mapping that what stands for, and refuses names it does not know.
func readParts(v strictyaml.Value, what string, known ...string) (parts, error) {
	pairs, err := v.Mapping()
	if err != nil {
		return parts{}, err
	}
	p := parts{whole: v, byName: map[string]strictyaml.Value{}}
	for _, pair := range pairs {
		if !slices.Contains(known, pair.Name) {
			return parts{}, pair.Value.Refuse("there is no such part; " + what + " has " + strings.Join(known, ", "))
		}
		p.byName[pair.Name] = pair.Value
	}
	return p, nil
}

// at is the part of this name, or the whole, to say what is wrong with it.
func (p parts) at(name string) strictyaml.Value {
	if v, ok := p.byName[name]; ok {
		return v
	}
	return p.whole
}

// text is the part of this name, or instead where it is left out.
func (p parts) text(name, instead string) (string, error) {
	v, ok := p.byName[name]
	if !ok {
		return instead, nil
	}
	text, err := v.Text()
	if err == nil && text == "" {
		err = v.Refuse("it is empty")
	}
	return text, err
}

// yes is the part of this name, false where it is left out.
func (p parts) yes(name string) (bool, error) {
	v, ok := p.byName[name]
	if !ok {
		return false, nil
	}
	return v.Bool()
}

// number is the part of this name, at least least, or 0 where it is left out.
func (p parts) number(name string, least int) (int, error) {
	v, ok := p.byName[name]
	if !ok {
		return 0, nil
	}
	n, err := v.Int()
	if err == nil && n < least {
		err = v.Refuse(fmt.Sprintf("it must be at least %d", least))
	}
	return n, err
}

// each reads the list of this name, an entry at a time. An entry goes by its own name in
// errors, or by its number where that will not do.
func (p parts) each(name, what string, most int, read func(strictyaml.Value) error) error {
	v, ok := p.byName[name]
	if !ok {
		return nil
	}
	entries, err := v.Sequence()
	if err != nil {
		return err
	}
	if len(entries) > most {
		return v.Refuse(fmt.Sprintf("there can be %d at most, not %d", most, len(entries)))
	}
	for i, entry := range entries {
		called := fmt.Sprint(i + 1)
		if own, ok := entry.Lookup("name"); ok && throttle.CheckName(own) == nil {
			called = own
		}
		if err := read(entry.Named(what + " " + called)); err != nil {
			return err
		}
	}
	return nil
}

// names are those that one list of the file has used.
type names map[string]strictyaml.Value

// read is the name of an entry, which no other has.
func (n names) read(p parts) (string, error) {
	v, ok := p.byName["name"]
	if !ok {
		return "", p.whole.Refuse("it has no name")
	}
	name, err := v.Text()
	if err != nil {
		return "", err
	}
	if err := checkName(name); err != nil {
		return "", v.Refuse(err.Error())
	}
	if before, twice := n[name]; twice {
		return "", v.Refuse(fmt.Sprintf("the name is used twice, first in line %d", before.Place.Line))
	}
	n[name] = v
	return name, nil
}

// taken are what answers call the limits that are mailgate's own, as their rule.
var taken = []string{"lookups", "countdowns", "guesses", "requests"}

func checkName(name string) error {
	if slices.Contains(taken, name) {
		return errors.New("this name is taken by a limit of mailgate's own")
	}
	return throttle.CheckName(name)
}
