package redisx

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseURL_EveryForm_IsRead(t *testing.T) {
	for text, want := range map[string]string{
		"redis://localhost":                                        "[localhost:6379] /0",
		"redis://localhost:7000/3":                                 "[localhost:7000] /3",
		"rediss://u:p%40ss@host":                                   "[host:6379] u p@ss /0 TLS",
		"redis://:p@ss@host":                                       "[host:6379]  p@ss /0",
		"redis://[::1]:7000":                                       "[[::1]:7000] /0",
		"redis://[::1]":                                            "[[::1]:6379] /0",
		"redis+cluster://a,b:7001,c":                               "[a:6379 b:7001 c:6379] /0 Cluster",
		"rediss+cluster://u:p@a,b":                                 "[a:6379 b:6379] u p /0 Cluster TLS",
		"redis+sentinel://a,b:7001/mymaster":                       "[a:26379 b:7001] /0 mymaster",
		"rediss+sentinel://u:p@a/my%20master/2":                    "[a:26379] u p /2 my master TLS",
		"redis+sentinel://a/m?sentinel_user=x&sentinel_password=y": "[a:26379] /0 m x y",
		"redis+sentinel://a/m?sentinel_password=x%26":              "[a:26379] /0 m  x&",
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
		"":                               "no scheme",
		"localhost:6379":                 "no scheme",
		"redisx://localhost":             "scheme is none of",
		"redis://":                       "host number 1 is empty",
		"redis+cluster://a,,c":           "host number 2 is empty",
		"redis+cluster://a/0":            "names a database",
		"redis://a,b":                    "several hosts",
		"redis://host:0":                 "port",
		"redis://host:port":              "port",
		"redis://a:b:c":                  "is not host:port",
		"redis://host/x":                 "database is not a number",
		"redis+sentinel://host":          "names no master",
		"redis+sentinel://host/%zz":      "not percent-encoded",
		"redis://hunter2%zz:pw@host":     "not percent-encoded",
		"redis://host?ca=/no/such/file":  "a setting other than",
		"rediss://host?ca=/no/such/file": "ca cannot be read",
		"redis://host?timeout=3s":        "a setting other than",
		"redis://host?sentinel_user=x":   "a setting other than",
		"redis://:hunter2@host?a=%zz":    "query is not percent-encoded",
		"redis://hunter2@host":           "user without a password",
		"redis+sentinel://host/m?sentinel_user=hunter2": "user without a password",
		"redis://user:hunter2@host:1:2":                 "is not host:port",
		"redis://user:20?hunter2@host:6379":             "before the @",
		"redis://user:hunter2/@host":                    "before the @",
		"redis+cluster://user:hunter2@a,b/":             "",
	} {
		_, err := parseURL(text)
		if part == "" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want a sentence with %q", text, err, part)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error contains a secret: %v", text, err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"redis://u:p@h:1/0", "rediss+sentinel://u:p@a,b/m/1?sentinel_user=x", "redis+cluster://[::1]:1,b", "redis://@:/?%"} {
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
