package secret

import "encoding/hex"

// Names makes the names by which logs call a mailbox or anything else that they must not show:
// keyed hashes, which cannot be computed or undone without the key.
type Names struct{ mac *MAC }

// NewNames returns the names under a key.
func NewNames(key []byte) *Names { return &Names{NewMAC(key)} }

// Of returns the name of a text, ten hexadecimal digits.
func (n *Names) Of(text string) string {
	s := n.mac.begin()
	defer n.mac.states.Put(s)
	s.add(text)
	s.text = hex.AppendEncode(s.text[:0], s.end()[:5])
	return string(s.text)
}
