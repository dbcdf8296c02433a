package mailer

// duration is what expires.txt puts into words: a count of "second", "minute",
// "hour" or "day".
type duration struct {
	Count int64
	Unit  string
}

// durationIn says a time as a person would: in the largest unit of which there
// are two or more, or exactly one. It rounds down, since a mail that promises
// more time than there is would mislead, but never to nothing.
func durationIn(ms int64) duration {
	seconds := max(ms/1000, 1)
	units := []struct {
		name    string
		seconds int64
	}{{"day", 86400}, {"hour", 3600}, {"minute", 60}}
	for _, unit := range units {
		if seconds == unit.seconds || seconds >= 2*unit.seconds {
			return duration{Count: seconds / unit.seconds, Unit: unit.name}
		}
	}
	return duration{Count: seconds, Unit: "second"}
}
