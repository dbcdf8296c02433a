package judge

import "fmt"

// Figure is something that a program holds, before a run and when all is over.
type Figure struct {
	Name          string
	Before, After float64
	Slack         float64 // more than this above Before is a leak
}

// Leftovers finds what has not come back to where it was.
func Leftovers(figures []Figure) (found []Violation) {
	for _, f := range figures {
		if f.After > f.Before+f.Slack {
			found = append(found, Violation{Rule: "leftovers", What: fmt.Sprintf("%s was %g and is %g", f.Name, f.Before, f.After)})
		}
	}
	return found
}

// Point is a figure at a moment, in Unix milliseconds.
type Point struct {
	At    int64
	Value float64
}

// Growth is by how much a figure grew over the second half of the points: the slope of the line
// that fits them best, times their time. A figure that is level may swing, and grows by little.
func Growth(points []Point) float64 {
	half := points[len(points)/2:]
	var time, value float64
	for _, p := range half {
		time += float64(p.At-half[0].At) / float64(len(half))
		value += p.Value / float64(len(half))
	}
	var both, square float64
	for _, p := range half {
		off := float64(p.At-half[0].At) - time
		both += off * (p.Value - value)
		square += off * off
	}
	if square == 0 {
		return 0
	}
	return both / square * float64(half[len(half)-1].At-half[0].At)
}
