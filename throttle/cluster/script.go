package cluster

import (
	_ "embed"

	"github.com/mailgate/mailgate/redisstore"
)

var (
	//go:embed scripts/take.lua
	takeSource string
	//go:embed scripts/look.lua
	lookSource string
	//go:embed scripts/release.lua
	releaseSource string
	//go:embed scripts/reset.lua
	resetSource string
	//go:embed scripts/tiers_record.lua
	recordSource string

	takeScript    = decides(takeSource, readHistory)
	lookScript    = looks(lookSource, readHistory)
	releaseScript = redisstore.NewScript(releaseSource, nil)
	resetScript   = looks(resetSource, readHistory)
	recordScript  = decides(recordSource, readHistory)
	tierScripts   = []*redisstore.Script{takeScript.Script, lookScript.Script, releaseScript, resetScript.Script, recordScript.Script}
)

// A script is one that replies with what it saw.
type script struct {
	*redisstore.Script
	read func(reply string) (seen, error)
}

// looks makes a script whose writes, if it has any, may be forgotten.
func looks(source string, read func(string) (seen, error)) script {
	return script{redisstore.NewScript(source, nil), read}
}

// decides makes a script whose admissions replicas must have, where any must. One that
// is repeated is waited for again: nobody knows whether it was the first time.
func decides(source string, read func(string) (seen, error)) script {
	return script{redisstore.NewScript(source, admits), read}
}

func admits(reply string) bool {
	if reply == "" {
		return false
	}
	_, answer := cutAnswer(reply)
	return answer == admitted || answer == admittedBefore
}
