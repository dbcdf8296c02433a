package relay

// Limits are the limits of the product, for tests to change.
type Limits = limits

// Standard are those of the product.
var Standard = standard

// With returns options with other limits.
func (o Options) With(l Limits) Options {
	o.limits = &l
	return o
}
