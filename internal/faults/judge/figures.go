package judge

import "fmt"

// Figure is how much of something a program holds.
type Figure struct {
	Name  string
	Value float64
	Slack float64 // more than this above the value before is a leak
}

// Leftovers finds what has not come back to where it was before.
func Leftovers(before, after []Figure) (found []Violation) {
	for i, f := range after {
		if was := before[i].Value; f.Value > was+f.Slack {
			found = append(found, Violation{Rule: "leftovers", What: fmt.Sprintf("%s was %g and is %g", f.Name, was, f.Value)})
		}
	}
	return found
}

// Growth returns by how much a figure grew over the second half of its values, taken at even
// distances: twice the difference between the means of the last two quarters. A figure that is
// level may swing, and grows by little.
func Growth(values []float64) float64 {
	quarter := len(values) / 4
	if quarter == 0 {
		return 0
	}
	var grown float64
	for i := range quarter {
		grown += values[len(values)-1-i] - values[len(values)-1-quarter-i]
	}
	return 2 * grown / float64(quarter)
}
