package redisx

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseURL_EveryForm_IsRead(t *testing.T) {
	for text, want := range map[string]string{
		"redis://localhost":                                "[localhost:6379] /0",
		"redis://localhost:7000/3":                         "[localhost:7000] /3",
		"rediss://u:p%40ss@host":                           "[host:6379] u p@ss /0 TLS",
		"redis://:p@ss@host":                               "[host:6379]  p@ss /0",
		"redis://[::1]:7000":                               "[[::1]:7000] /0",
		"redis://[::1]":                                    "[[::1]:6379] /0",
		"redis+cluster://a?addr=b:7001&addr=c:1":           "[a:6379 b:7001 c:1] /0 Cluster",
		"rediss+cluster://u:p@a/?addr=[::1]:1":             "[a:6379 [::1]:1] u p /0 Cluster TLS",
		"redis+sentinel://a:1?master_name=m":               "[a:1] /0 m",
		"redis+sentinel://a:1?master_name=m&password=x%26": "[a:1]  x& /0 m",
		"rediss+sentinel://x:y@a:1/2?addr=b:7001&master_name=my%20master&username=u&password=p": "[a:1 b:7001] u p /2 my master x y TLS",
	} {
		s, err := parseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := fmt.Sprint(s.Addrs)
		if s.Password != "" {
			got += " " + s.Username + " " + s.Password
		}
		got += fmt.Sprintf(" /%d %s", s.DB, s.MasterName)
		if s.SentinelPassword != "" {
			got += " " + s.SentinelUsername + " " + s.SentinelPassword
		}
		if got = strings.TrimRight(got, " "); s.IsClusterMode {
			got += " Cluster"
		}
		if s.TLSConfig != nil {
			got += " TLS"
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestParseURL_Wrong_SaysWhat(t *testing.T) {
	for text, part := range map[string]string{
		"":                       "not a Redis URL",
		"localhost:6379":         "not a Redis URL",
		"redisx://localhost":     "not a Redis URL",
		"redis+x://localhost":    "not a Redis URL",
		"redis://":               "not a Redis URL",
		"redis://:hunter2@/0":    "not a Redis URL",
		"redis://:hunter2@:6379": "not a Redis URL",
		"redis+cluster://a/0":    "not a Redis URL",
		"redis://a,b":            "not a Redis URL",
		"redis+cluster://a,b":    "not a Redis URL",
		"redis+cluster://user:20?addr=hunter2@host:6379":         "not a Redis URL",
		"redis+cluster://a?addr=hunter2":                         "not a Redis URL",
		"redis://host:port":                                      "not a Redis URL",
		"redis://a:b:c":                                          "not a Redis URL",
		"redis://host/hunter2":                                   "not a Redis URL",
		"redis+sentinel://host:1":                                "not a Redis URL",
		"redis+sentinel://host:1/master/0?master_name=m":         "not a Redis URL",
		"redis://hunter2%zz:pw@host":                             "not a Redis URL",
		"redis://:hunter2@host?a=%zz":                            "not a Redis URL",
		"redis://user:hunter2@host:1:2":                          "not a Redis URL",
		"redis://user:hunter2/@host":                             "not a Redis URL",
		"redis://:20#hunter2@host":                               "not a Redis URL",
		"redis://user:20?hunter2@host:6379":                      "not a Redis URL",
		"redis+cluster://user:hunter2@a?read_only=true":          "a setting other than",
		"redis+sentinel://a:1?master_name=m&replica_only=true":   "a setting other than",
		"rediss://host?skip_verify=true":                         "a setting other than",
		"redis://host?ca=/no/such/file":                          "a setting other than",
		"redis://host?username=hunter2":                          "a setting other than",
		"rediss://host?ca=/no/such/file":                         "ca cannot be read",
		"redis://hunter2@host":                                   "user without a password",
		"redis+sentinel://host:1?master_name=m&username=hunter2": "user without a password",
		"redis+sentinel://hunter2@host:1?master_name=m":          "user without a password",
	} {
		_, err := parseURL(text)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want a sentence with %q", text, err, part)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error contains a secret: %v", text, err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"redis://u:p@h:1/0", "rediss+sentinel://u:p@a:1/1?master_name=m&username=x&password=y&addr=b:1", "redis+cluster://[::1]:1?addr=b:2", "redis://@:/?%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseURL(text)
		if err != nil {
			return
		}
		if len(s.Addrs) == 0 {
			t.Fatalf("%q was read as %+v", text, s)
		}
		client, err := Open(Options{URL: text, Timeout: time.Second})
		if err != nil {
			t.Fatalf("%q is read and not opened: %v", text, err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
