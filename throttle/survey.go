package throttle

import "context"

// A Surveyor is a Historian that can go through what it has on record.
type Surveyor interface {
	Historian

	// Each visits the histories that have a send inside the longest window, in any order
	// and without their keys, until visit returns false. It holds up no other call. A key
	// that is admitted, released or reset meanwhile is visited as it was or as it is, or
	// not at all. An error is ErrUnavailable, and then some have not been visited.
	Each(ctx context.Context, visit func(History) bool) error
}
