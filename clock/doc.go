// Package clock reads the machine's clock for those who decide by it. The rule itself
// reads none: whoever asks it hands in the moment.
package clock
