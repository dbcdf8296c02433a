package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// longLists compares admitted sends of mailgate with 100,000 denied domains and 10,000 overrides, none of which is
// about them, with those of one without.
func longLists(b *bench) []row {
	relay := b.openSink()
	var denied, overridden strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&denied, "denied%06d.example\n", i)
	}
	for i := range 10_000 {
		fmt.Fprintf(&overridden, "customer%05d@shop.example\n", i)
	}
	dir, file := must(os.MkdirTemp(b.dir, "")), "rules.yaml"
	for name, text := range map[string]string{
		"denied.txt": denied.String(), "overridden.txt": overridden.String(),
		file: `rules: []
deny: [{name: disposable, file: denied.txt}]
overrides: [{rule: mailbox, file: overridden.txt, limit: day=100/24h, comment: customers}]
`,
	} {
		check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	with, _ := b.newDataDir()
	without, _ := b.newDataDir()
	ours, empty := b.startMailgate(relay.addr, with, "MAILGATE_RULES="+filepath.Join(dir, file)), b.startMailgate(relay.addr, without)
	samples := b.admitted(each, ours, empty)
	return []row{
		compare("admitted send, 110,000 denied or overridden", "sends/s", "without lists", rate, samples[0], samples[1], atLeast(0.9)),
		compare("admitted send, 110,000 denied or overridden, processor", "µs", "without lists", processor, samples[0], samples[1], bound{}),
	}
}
