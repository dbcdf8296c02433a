// Package similar finds the name that was meant by one that is not known.
package similar

import "strings"

// longest is how long a text may be that is compared with names.
const longest = 64

var plain = strings.NewReplacer("_", "", "-", "")

// To returns the name that differs least from what was written, by at most two letters and half of its length, or nothing.
// Capitals, - and _ make no difference.
func To(written string, names []string) (meant string) {
	if len(written) > longest {
		return ""
	}
	written = plain.Replace(strings.ToLower(written))
	least := min(2, len(written)/2) + 1
	for _, name := range names {
		if n := distance(written, plain.Replace(strings.ToLower(name))); n < least {
			least, meant = n, name
		}
	}
	return meant
}

// distance is how many letters have to be added, left out or replaced, or swapped with the next, to make b of a.
func distance(a, b string) int {
	var before, above []int
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range a {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i + 1
		for k := range b {
			row[k+1] = min(above[k+1], row[k]) + 1
			if a[i] == b[k] {
				row[k+1] = min(row[k+1], above[k])
			} else {
				row[k+1] = min(row[k+1], above[k]+1)
			}
			if i > 0 && k > 0 && a[i] == b[k-1] && a[i-1] == b[k] {
				row[k+1] = min(row[k+1], before[k-1]+1)
			}
		}
	}
	return row[len(b)]
}
