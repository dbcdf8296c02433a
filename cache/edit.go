package cache

// An Edit is what an Update does to the value it was shown.
type Edit[V any] struct {
	kind    editKind
	value   V
	expires int64
}

type editKind int

const (
	keep editKind = iota
	put
	remove
)

// Keep leaves the value as it is.
func Keep[V any]() Edit[V] { return Edit[V]{kind: keep} }

// Put replaces the value. It is found until the clock reaches expires.
func Put[V any](value V, expires int64) Edit[V] {
	return Edit[V]{kind: put, value: value, expires: expires}
}

// Remove forgets the value.
func Remove[V any]() Edit[V] { return Edit[V]{kind: remove} }
