package house_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestPages_Sentences_AreShort holds prose and lists to 30 words a sentence. A link is its words, and code is one
// word. Code blocks, tables and headings are not read.
func TestPages_Sentences_AreShort(t *testing.T) {
	unread := regexp.MustCompile("(?ms)^ *```.*?^ *```$|^    .*?$|^ *\\|.*?$|^#.*?$")
	link, code := regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`), regexp.MustCompile("`[^`]*`")
	end, read := regexp.MustCompile(`(?:[.?!]|:\*\*)[)"*]*\s+|\n\s*\n|\n *(?:-|\d+\.) `), 0
	for page, text := range files(t, ".md") {
		if page != "README.md" && page != "CONTRIBUTING.md" && !strings.HasPrefix(page, "docs/") {
			continue
		}
		prose := code.ReplaceAllString(link.ReplaceAllString(unread.ReplaceAllString(text, "\n"), "$1"), "code")
		for _, sentence := range end.Split(prose, -1) {
			words := strings.Fields(sentence)
			if read += len(words); len(words) > 30 {
				t.Errorf("%s: %d words: %s", page, len(words), strings.Join(words, " "))
			}
		}
	}
	if read < 5000 {
		t.Errorf("only %d words were read", read)
	}
}
