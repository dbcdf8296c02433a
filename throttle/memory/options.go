package memory

import "github.com/mailgate/mailgate/clock"

// Options say how much is kept. The zero value is fit for use.
type Options struct {
	// Keys is the most keys that are on record at once; 0 and less is DefaultKeys, and more
	// than 1<<31 is 1<<31. One more is refused with ErrFull until one of the others counts no more.
	Keys int
	// Now reads the clock; the default is clock.Now.
	Now func() int64
}

// DefaultKeys is how many keys are on record at most where nothing else is asked for.
const DefaultKeys = 1 << 20

func (o Options) orDefaults() Options {
	if o.Keys <= 0 {
		o.Keys = DefaultKeys
	}
	if o.Now == nil {
		o.Now = clock.Now
	}
	return o
}
