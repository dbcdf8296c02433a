package verify

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"slices"
)

// MaxCodes is how many codes of a mailbox are kept at most. To forget one is safe, since
// it only makes a code wrong that was right; and it is rare, since a mailbox is mailed far
// less often than 16 times in the life of a code. Without a bound, though, each more code
// would make a guess likelier to be right, and what is kept of a mailbox would grow.
const MaxCodes = 16

// A Kept is a code that is on record.
type Kept struct {
	Hash    Hash
	Expires int64 // the first moment at which the code is wrong
}

// Codes are the codes of one mailbox that are on record, each hash once, the one that
// expires first in front. Of those that expire at once the one with the lower hash is in
// front, so that every book has them in one order. Codes never change; what changes them
// returns others.
type Codes []Kept

// Add is the codes with one more, which is good until expires. If the book is full, the
// code that would expire first is forgotten for it. A code that is on record already is
// good until the later of both moments. What has expired is left out.
func (c Codes) Add(h Hash, now, expires int64) Codes {
	next := make(Codes, 0, MaxCodes)
	for _, kept := range c.live(now) {
		if kept.Hash == h {
			expires = max(expires, kept.Expires)
			continue
		}
		next = append(next, kept)
	}
	if expires <= now {
		return next
	}
	next = next[max(0, len(next)+1-MaxCodes):]
	added := Kept{Hash: h, Expires: expires}
	at, _ := slices.BinarySearchFunc(next, added, Kept.compare)
	return slices.Insert(next, at, added)
}

// Remove is the codes without this one. What has expired is left out. If by chance two
// mails had the same code it is wrong for both, which is safe.
func (c Codes) Remove(h Hash, now int64) Codes {
	return slices.DeleteFunc(slices.Clone(c.live(now)), func(kept Kept) bool { return kept.Hash == h })
}

// Check says what a code is that somebody brings, and which codes are on record from then
// on: none if it was right, else those that have not expired. How long it takes does not
// depend on which code is right.
func (c Codes) Check(h Hash, now int64) (Result, Codes) {
	live := c.live(now)
	right := 0
	for _, kept := range live {
		right |= subtle.ConstantTimeCompare(kept.Hash[:], h[:])
	}
	switch {
	case len(live) == 0:
		return Expired, nil
	case right == 1:
		return Correct, nil
	}
	return Incorrect, live
}

// Expires is the moment at which the last of the codes has expired, 0 where there is none.
func (c Codes) Expires() int64 {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].Expires
}

// Sorted reports whether the codes are in order, each hash once, and not too many. A book
// that reads them back asks.
func (c Codes) Sorted() bool {
	seen := make(map[Hash]bool, len(c))
	for i, kept := range c {
		if seen[kept.Hash] || i > 0 && c[i-1].compare(kept) > 0 {
			return false
		}
		seen[kept.Hash] = true
	}
	return len(c) <= MaxCodes
}

// live is the codes that have not expired.
func (c Codes) live(now int64) Codes {
	for i, kept := range c {
		if now < kept.Expires {
			return c[i:]
		}
	}
	return nil
}

func (k Kept) compare(other Kept) int {
	return cmp.Or(cmp.Compare(k.Expires, other.Expires), bytes.Compare(k.Hash[:], other.Hash[:]))
}
