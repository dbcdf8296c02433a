package cluster

import (
	"embed"

	"github.com/mailgate/mailgate/redisstore"
)

//go:embed scripts/*.lua
var programs embed.FS

// program is the text of some scripts, one behind the other.
func program(names ...string) (text string) {
	for _, name := range names {
		part, err := programs.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		text += string(part)
	}
	return text
}

var (
	takeScript    = decides(program("take"), readHistory)
	lookScript    = looks(program("look"), readHistory)
	releaseScript = redisstore.NewScript(program("release"), nil)
	resetScript   = looks(program("reset"), readHistory)
	recordScript  = decides(program("tiers_record"), readHistory)
	tierScripts   = []*redisstore.Script{takeScript.Script, lookScript.Script, releaseScript, resetScript.Script, recordScript.Script}
)

// A script is one that replies with what it saw.
type script struct {
	*redisstore.Script
	read func(reply string) (seen, error)
}

// into reads replies to where saw is. It is for scripts that may say that it is too late.
func (s script) into(saw *seen) func(reply string) (now int64, late bool, err error) {
	return func(reply string) (now int64, late bool, err error) {
		*saw, err = s.read(reply)
		return saw.now, saw.answer == tooLate, err
	}
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
