package yamlfile

import (
	"reflect"
	"strings"
)

// keys returns the names that a type reads, also inside of it.
func keys(of reflect.Type) (all []string) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		return keys(of.Elem())
	case reflect.Struct:
		for field := range of.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); name != "" {
				all = append(all, name)
			}
			all = append(all, keys(field.Type)...)
		}
	}
	return all
}

// similar returns the name that differs least from what was written, by at most two letters and half of its length.
func similar(written string, names []string) (meant string) {
	least := min(2, len(written)/2) + 1
	for _, name := range names {
		if n := distance(written, name); n < least {
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
