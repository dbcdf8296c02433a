package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The bare Badger of the comparison has the settings of ours, line for line. Package
// cache does not hand them out: nothing outside it knows of Badger.
func TestSameSettings(t *testing.T) {
	want, got := settingLines(t, "../cache/settings.go"), settingLines(t, "same_settings.go")
	if len(want) < 10 {
		t.Fatalf("only %d settings were found in package cache", len(want))
	}
	if !slices.Equal(got, want) {
		t.Errorf("copy the settings of package cache into same_settings.go:\n%s\nhere they are\n%s",
			strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

var (
	setting  = regexp.MustCompile(`With\w+\(.*\)|^(memTableSize|memTables|maxValue) += .*`)
	ownAlone = regexp.MustCompile(`^With(InMemory|SyncWrites|Logger)\(`) // what depends on the options of a Disk
)

func settingLines(t *testing.T, file string) (all []string) {
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(source)) {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimPrefix(strings.TrimSpace(line), "const ")
		if found := setting.FindString(line); found != "" && !ownAlone.MatchString(found) {
			all = append(all, strings.Join(strings.Fields(found), " "))
		}
	}
	slices.Sort(all)
	return all
}
