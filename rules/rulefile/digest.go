package rulefile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Digest is ten characters that are the same for files that mean the same, in whatever
// order and words, and differ for others: so it can be seen whether several processes go
// by one file. It is no secret, and gives nothing of the file away.
func (f File) Digest() string {
	whole := sha256.New()
	all := f.byName()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		fmt.Fprintf(whole, "%q %q %q %d %t %q %q %q\n", name, r.By, r.Count, r.KeepForFirstSends, r.Shadow,
			r.Exempt.Mailboxes, r.Exempt.Networks, r.Exempt.Callers)
	}
	return hex.EncodeToString(whole.Sum(nil)[:5])
}
