package wire

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a JSON object that is put together member by member, as [Encode] would write it. A
// refusal is the most frequent answer, and this takes less than half of the time.
type Object []byte

// String adds a member that is a string. What is not UTF-8 becomes U+FFFD.
func (o *Object) String(name, value string) {
	o.name(name)
	*o, _ = jsontext.AppendQuote(*o, value)
}

// Text is String for bytes.
func (o *Object) Text(name string, value []byte) {
	o.name(name)
	*o, _ = jsontext.AppendQuote(*o, value)
}

// Strings adds a member that is a list of strings.
func (o *Object) Strings(name string, values []string) {
	o.name(name)
	*o = append(*o, '[')
	for i, value := range values {
		if i > 0 {
			*o = append(*o, ',')
		}
		*o, _ = jsontext.AppendQuote(*o, value)
	}
	*o = append(*o, ']')
}

// Addr adds a member that is an address of a network.
func (o *Object) Addr(name string, value netip.Addr) {
	o.name(name)
	*o = append(value.AppendTo(append(*o, '"')), '"')
}

// Now adds a member that is the time of the clock, to the nanosecond, where it is here.
func (o *Object) Now(name string) {
	o.name(name)
	*o = append(time.Now().AppendFormat(append(*o, '"'), time.RFC3339Nano), '"')
}

// Int adds a member that is a number.
func (o *Object) Int(name string, value int64) {
	o.name(name)
	*o = strconv.AppendInt(*o, value, 10)
}

// Float adds a member that is a number.
func (o *Object) Float(name string, value float64) {
	o.name(name)
	*o = strconv.AppendFloat(*o, value, 'f', -1, 64)
}

// Time adds a member that is a time, as the function Time formats it.
func (o *Object) Time(name string, ms int64) {
	o.name(name)
	*o = append(appendTime(append(*o, '"'), ms), '"')
}

// Any adds a member that Encode writes.
func (o *Object) Any(name string, value any) { o.Raw(name, Encode(value)) }

// Bool adds a member that is true or false.
func (o *Object) Bool(name string, value bool) {
	o.name(name)
	*o = strconv.AppendBool(*o, value)
}

// StringOrNull adds a member that is a string, or null in place of an empty one.
func (o *Object) StringOrNull(name, value string) {
	if value != "" {
		o.String(name, value)
		return
	}
	o.name(name)
	*o = append(*o, "null"...)
}

// Raw adds a member that is JSON already.
func (o *Object) Raw(name string, value []byte) {
	o.name(name)
	*o = append(*o, value...)
}

// Problem adds the members of every problem.
func (o *Object) Problem(kind, title string, status int, detail string) {
	o.String("type", kind)
	o.String("title", title)
	o.Int("status", int64(status))
	o.String("detail", detail)
}

func (o *Object) name(name string) {
	before := byte(',')
	if len(*o) == 0 {
		before = '{'
	}
	*o = append(append(append(*o, before, '"'), name...), '"', ':')
}

// Members adds those of a struct, as Encode writes it, to an object with a member.
func (o *Object) Members(of any) {
	if text := Encode(of); len(text) > len("{}") {
		*o = append(append(*o, ','), text[1:len(text)-1]...)
	}
}

// Open returns an object of a text that Encode has made of a struct with a member, to add more to it.
func Open(text []byte) Object { return text[:len(text)-1] }

// End returns the object, which has a member.
func (o Object) End() []byte { return append(o, '}') }
