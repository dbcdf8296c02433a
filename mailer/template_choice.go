package mailer

import "strings"

// lookForChoice finds out whether what a request says can make a mail that will
// not do: a subject too long or empty, or a piece cut from what is shorter. It
// goes by words, since there is no other way to these fields and functions than
// by their names.
func (m *mailTemplate) lookForChoice(files map[string]string) {
	all := ""
	for _, file := range templateFiles() {
		all += files[file] + "\n"
	}
	m.madeBy, m.subjectBy = longestField(all), longestField(files[subjectFile])
	m.choosy = m.madeBy == "data" || m.subjectBy == "email" ||
		strings.Contains(all, "slice") || strings.Contains(all, "index")
}

// longestField is the field of which a text has most, in the words of the HTTP
// contract.
func longestField(text string) string {
	switch {
	case strings.Contains(text, "Data"):
		return "data"
	case strings.Contains(text, "Email"):
		return "email"
	}
	return "code"
}
