package strictyaml_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/strictyaml"
)

// spell writes all that can be read of a value, and stops at the first mistake.
func spell(v strictyaml.Value) (string, error) {
	if !v.Given() {
		return "nothing", nil
	}
	if v.IsSequence() {
		entries, err := v.Sequence()
		if err != nil {
			return "", err
		}
		var all []string
		for _, entry := range entries {
			one, err := spell(entry)
			if err != nil {
				return "", err
			}
			all = append(all, one)
		}
		return "[" + strings.Join(all, " ") + "]", nil
	}
	if n, err := v.Int(); err == nil {
		return fmt.Sprint("int ", n), nil
	}
	if b, err := v.Bool(); err == nil {
		return fmt.Sprint("bool ", b), nil
	}
	if text, err := v.Text(); err == nil {
		return fmt.Sprintf("%q", text), nil
	}
	if text, err := v.Plain(); err == nil {
		return "plain " + text, nil
	}
	return spellMapping(v)
}

func spellMapping(v strictyaml.Value) (string, error) {
	pairs, err := v.Mapping()
	if err != nil {
		return "", err
	}
	var all []string
	for _, pair := range pairs {
		one, err := spell(pair.Value)
		if err != nil {
			return "", err
		}
		all = append(all, pair.Name+"="+one)
	}
	return "{" + strings.Join(all, " ") + "}", nil
}

// What a file says, or why it says nothing.
func TestParse(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "nothing"},
		{"# a comment\n", "nothing"},
		{"---\n", "nothing"},
		{"~", "nothing"},
		{"a: b # why\nc: 'd e'\n\"f\": \"g\"", `{a="b" c="d e" f="g"}`},
		{"a:\nb: ~\nc: null", "{a=nothing b=nothing c=nothing}"},
		{"a: 5\nb: -5\nc: '5'\nd: 99999999999999999999", `{a=int 5 b=int -5 c="5" d="99999999999999999999"}`},
		{"a: 0\nb: 10\nc: 010\nd: -01\ne: +7", "{a=int 0 b=int 10 c=plain 010 d=plain -01 e=int 7}"},
		{"a: 0x10\nb: 1.5\nc: True", "{a=plain 0x10 b=plain 1.5 c=plain True}"},
		{"off: true\nis: false\non: no", `{off=bool true is=bool false on="no"}`},
		{"- a\n- b: c\n- [d, {e: f}]", `["a" {b="c"} ["d" {e="f"}]]`},
		{"-", "[nothing]"},
		{"a: b\n---\n", `{a="b"}`},
		{"# why\n---\na: b", `{a="b"}`},
		{"---\n# why\n---\na: b", "f.yaml:3: it must be one document"},
		{"a: b\n---\n---\nc: d", "f.yaml:3: it must be one document"},
		{"a:\n  b:\n    c: 1\n    d: 2", "{a={b={c=int 1 d=int 2}}}"},
		{"a: first\n  second", `{a="first second"}`},

		{"\ufeffa: b", `{a="b"}`},
		{"\ufeff", "nothing"},
		{"a: b\r\nc: d\r\n", `{a="b" c="d"}`},

		{"Hidden: b\nHidden: c", "f.yaml:2: it was already set by f.yaml:1"},
		{"a: {hidden@b: {c: 1, c: 2}}", "f.yaml:1: a: c: it was already set by f.yaml:1: a: c"},
		{"a0-z9_:\n  b b: &hidden c", "f.yaml:2: a0-z9_: it must be lines of name: value"},
		{"9a: &hidden c", "f.yaml:1: it must be lines of name: value"},
		{"a/b: &hidden c", "f.yaml:1: it must be lines of name: value"},
		{"a:b: &hidden c", "f.yaml:1: it must be lines of name: value"},
		{"a`b: &hidden c", "f.yaml:1: it must be lines of name: value"},
		{"a{b: &hidden c", "f.yaml:1: it must be lines of name: value"},
		{strings.Repeat("x", 32) + ": &hidden c", "f.yaml:1: " + strings.Repeat("x", 32) + ": it must be lines of name: value"},
		{strings.Repeat("x", 33) + ": &hidden c", "f.yaml:1: it must be lines of name: value"},
		{"a: b\na: c", "f.yaml:2: a: it was already set by f.yaml:1: a"},
		{"a:\n  b: {c: 1, c: 2}", "f.yaml:2: a: b: c: it was already set by f.yaml:2: a: b: c"},
		{"a: b\n---\nc: d", "f.yaml: it must be one document"},
		{"%YAML 1.2\n---\na: b", "f.yaml: it must be one document"},
		{"a: &x b", "f.yaml:1: a: it must be lines of name: value"},
		{"a: b\nc: *x", "f.yaml:2: c: it must be lines of name: value"},
		{"a: !!str b", "f.yaml:1: a: it must be lines of name: value"},
		{"a: |\n  b\n", "f.yaml:1: a: it must be lines of name: value"},
		{"a: \"b\\nc\"", "f.yaml:1: a: it must be lines of name: value"},
		{"a: \"\\x1f\"", "f.yaml:1: a: it must be lines of name: value"},
		{"a: \"\\x7f\"", "f.yaml:1: a: it must be lines of name: value"},
		{"a: .inf", "f.yaml:1: a: it must be lines of name: value"},
		{"- a\n- &x b", "f.yaml:2: it must be lines of name: value"},
		{"a: b\n&x c: d", "f.yaml:2: a name must be a plain word"},
		{"a: b\n<<: {c: d}", "f.yaml:2: a name must be a plain word"},
		{"a: b\n1: d", "f.yaml:2: a name must be a plain word"},
		{"? a\n: b", "f.yaml:1: a name must be a plain word"},
		{"\"a\\nb\": c", "f.yaml:1: a name must be a plain word"},
		{"a: [hidden\nb: }", "f.yaml:2: this is not YAML that can be read"},
		{"a:\n\t- hidden", "f.yaml:2: this is not YAML that can be read: a tab cannot indent"},
		{"a:\n  b: c\n  \t- hidden", "f.yaml:3: this is not YAML that can be read: a tab cannot indent"},
		{"a: @hidden", "f.yaml:1: this is not YAML that can be read"},

		{"a:\tb\t# why\nc: [d,\te]\t\n-\t'f'", "f.yaml:3: this is not YAML that can be read"},
		{"a:\tb\t# why\twhy\nc: [d,\te]\t", `{a="b" c=["d" "e"]}`},
		{"a: b\nc: 5\t5", "f.yaml:2: a tab cannot be inside a name or a value"},
		{"a: hid\tden", "f.yaml:1: a tab cannot be inside a name or a value"},
		{"a: b\nhid\tden: [c]", "f.yaml:2: a tab cannot be inside a name or a value"},
		{"a: 'hid\tden'", "f.yaml:1: a: it must be lines of name: value"},
		{"a: b\nc: hid\xffden", "f.yaml: it is not UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := parse(tt.text)
			if err != nil {
				got = err.Error()
				var wrong *strictyaml.Error
				if !errors.As(err, &wrong) {
					t.Errorf("%v is not an Error", err)
				}
			}
			if got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func parse(text string) (string, error) {
	root, err := strictyaml.Parse("f.yaml", []byte(text))
	if err != nil {
		return "", err
	}
	return spell(root)
}

// Each thing that can be asked for, and what is said where there is something else.
func TestWrongKinds(t *testing.T) {
	root, err := strictyaml.Parse("f.yaml", []byte("text: a\nnumber: 7\nswitch: true\nlist: [a, 1]\nmap: {a: b}\nnone:\nlong: \"a\\tb\""))
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := root.Mapping()
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range pairs {
		v := pair.Value.Named("part " + pair.Name)
		_, text := v.Text()
		_, number := v.Int()
		_, yes := v.Bool()
		_, list := v.Sequence()
		_, mapping := v.Mapping()
		got := map[string]error{"text": text, "number": number, "switch": yes, "list": list, "map": mapping}
		for kind, err := range got {
			if (err == nil) != (kind == pair.Name) {
				t.Errorf("%s asked as %s: %v", pair.Name, kind, err)
			}
			if err != nil && !strings.Contains(err.Error(), ": part "+pair.Name+": ") {
				t.Errorf("%s asked as %s: %v", pair.Name, kind, err)
			}
		}
	}
}

// A mapping can be called by what it has under a name before the rest is looked at.
func TestLookup(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nb: [": "", "b: &x c\nname: a": "a", "name: 5": "", "name: [a]": "", "- name: a": "",
		"name: a": "a", "name: \"a\\nb\"": "", "b: c": "", "": "",
	} {
		root, err := strictyaml.Parse("f.yaml", []byte(text))
		if root.IsMapping() != (err == nil && text != "" && text[0] != '-') {
			t.Errorf("%q is a mapping: %t", text, root.IsMapping())
		}
		if err != nil {
			continue
		}
		if got, ok := root.Lookup("name"); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v, want %q", text, got, ok, want)
		}
	}
}

// Nothing that can be in a file breaks the reading, and no error has more than a line.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a: b", "a: [b, {c: d}]", "- a\n- b: c", "? a\n: b", "&a b: *a", "a: |\n b", "%YAML 1.2\n--- a", "\"\\x00\": {}", "a:\n\t- b", "---\n...\n---"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := parse(text)
		if err != nil && strings.ContainsAny(strings.TrimPrefix(err.Error(), "f.yaml"), "\r\n") {
			t.Errorf("more than one line: %q", err)
		}
	})
}

func ExampleParse() {
	root, err := strictyaml.Parse("shop.yaml", []byte("name: corner shop\nopen: true\ndoors: two\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	pairs, _ := root.Mapping()
	for _, pair := range pairs {
		switch pair.Name {
		case "name":
			name, _ := pair.Value.Text()
			fmt.Println("It is called", name)
		case "doors":
			_, err := pair.Value.Int()
			fmt.Println(err)
		default:
			fmt.Println(pair.Value.Refuse("there is no such thing"))
		}
	}
	// Output:
	// It is called corner shop
	// shop.yaml:2: open: there is no such thing
	// shop.yaml:3: doors: it must be a whole number
}
