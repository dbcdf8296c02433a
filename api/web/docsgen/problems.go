package main

import (
	"regexp"
	"strings"
)

// problem is a section of docs/problems.md.
type problem struct{ Name, Text string }

// readProblems returns the sections, with links that lead from any server to the other pages.
func readProblems(page string) (all []problem) {
	page = otherPage.ReplaceAllString(page, "](https://github.com/mailgate/mailgate/blob/main/docs/$1)")
	for _, section := range strings.Split(page, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n\n")
		all = append(all, problem{name, strings.TrimSpace(text)})
	}
	return all
}

var otherPage = regexp.MustCompile(`\]\(([a-z]+\.md[^)]*)\)`)
