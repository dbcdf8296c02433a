package wire

import (
	"strconv"

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

// Any adds a member that Encode writes.
func (o *Object) Any(name string, value any) {
	o.name(name)
	*o = append(*o, Encode(value)...)
}

// Verdict adds the members of a verdict.
func (o *Object) Verdict(v *Verdict) {
	o.orNull("rule", v.Rule)
	o.orNull("limit", v.Limit)
	o.Int("wait_ms", v.Wait)
	o.String("retry_at", v.RetryAt)
	o.String("server_time", v.ServerTime)
	o.name("limits")
	*o = append(*o, '[')
	for i := range v.Limits {
		if i > 0 {
			*o = append(*o, ',')
		}
		o.limit(&v.Limits[i])
	}
	*o = append(*o, ']')
	o.name("degraded")
	*o = strconv.AppendBool(*o, v.Degraded)
	if v.Countdown != "" {
		o.String("countdown", v.Countdown)
	}
}

func (o *Object) limit(l *Limit) {
	inner := (*o)[len(*o):]
	inner.String("name", l.Name)
	inner.Int("limit", int64(l.Limit))
	inner.Int("window_ms", l.Window)
	inner.Int("remaining", int64(l.Remaining))
	inner.Int("wait_ms", l.Wait)
	*o = append(*o, inner.End()...)
}

func (o *Object) orNull(name string, value *string) {
	if value != nil {
		o.String(name, *value)
		return
	}
	o.name(name)
	*o = append(*o, "null"...)
}

func (o *Object) name(name string) {
	before := byte(',')
	if len(*o) == 0 {
		before = '{'
	}
	*o = append(append(append(*o, before, '"'), name...), '"', ':')
}

// End returns the object, which has a member.
func (o Object) End() []byte { return append(o, '}') }
