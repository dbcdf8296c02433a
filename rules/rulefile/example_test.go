package rulefile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mailgate/mailgate/rules/rulefile"
	"github.com/mailgate/mailgate/throttle"
)

func ExampleRead() {
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rules.yaml")
	read := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
		file, err := rulefile.Read(path, rulefile.Defaults{
			Tiers:        throttle.DefaultPolicy(),
			Mailbox:      func(address string) (string, error) { return strings.ToLower(address), nil },
			SendDeadline: 15_000,
		})
		if err != nil {
			fmt.Println(strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)))
			return
		}
		for _, rule := range file.Rules {
			fmt.Printf("%s, by %s: %s\n", rule.Name, rule.By, rule.Count)
		}
	}
	read("rules:\n  - name: provider\n    by: all\n    algorithm: fixed-window\n    limit: day=50000/24h\n")
	read("rules:\n  - name: provider\n    by: all\n    algorithm: fixed-window\n    limit: 50000 a day\n")
	// Output:
	// mailbox, by mailbox: sliding-log minute=1/60s,hour=5/1h,day=10/24h
	// client-ip, by client_ip: sliding-window minute=100/60s in 60 parts
	// provider, by all: fixed-window day=50000/24h
	// rules.yaml:5: rule provider: limit: tier "50000 a day": write it as name=limit/window, such as minute=1/60s
}
