package redisstore

import "strings"

// Prefix is how the keys begin of the records that have no name, as in Options.
func (s *Store) Prefix() string { return s.prefix }

// Below is the prefix of keys that have a name, so that records of one name are kept
// apart from all others: "mailgate:name:{}" for the default prefix. The empty braces stay
// last, where they keep braces in a key from choosing its server.
func Below(prefix, name string) string {
	if front, found := strings.CutSuffix(prefix, "{}"); found {
		return front + name + ":{}"
	}
	return prefix + name + ":"
}
