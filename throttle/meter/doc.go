// Package meter is the classic ways to count sends, beside the exact tiers of a
// throttle.Policy. Each is a pure step on a small state: it reads no clock, and where
// states are kept is not its business.
package meter
