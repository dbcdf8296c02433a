package main

import (
	"sync"
	"time"
)

func inMemory() take {
	var mu sync.Mutex
	sends, codes := map[string][]time.Time{}, map[string]string{}
	return func(mailbox, code string) (limit string, wait time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		now, all := time.Now(), sends[mailbox]
		for _, t := range tiers {
			if len(all) >= t.limit {
				if left := t.window - now.Sub(all[len(all)-t.limit]); left > wait {
					limit, wait = t.name, left
				}
			}
		}
		if limit == "" {
			sends[mailbox], codes[mailbox] = append(all, now), code
		}
		return limit, wait, nil
	}
}
