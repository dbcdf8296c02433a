package cluster

import (
	_ "embed"

	"github.com/mailgate/mailgate/redisstore"
)

// The letters that the scripts answer with.
const (
	done  = '+' // added, recorded, removed, forgotten, or a right code: written in any case
	wrong = '-'
	none  = '0'
)

var (
	//go:embed scripts/codes.lua
	codesSource string
	//go:embed scripts/insert.lua
	insertSource string
	//go:embed scripts/add.lua
	addSource string
	//go:embed scripts/record.lua
	recordSource string
	//go:embed scripts/check.lua
	checkSource string
	//go:embed scripts/remove.lua
	removeSource string
	//go:embed scripts/forget.lua
	forgetSource string

	addScript    = redisstore.NewRecordScript(codesSource+insertSource+addSource, string(done))
	recordScript = redisstore.NewRecordScript(codesSource+insertSource+recordSource, string(done))
	checkScript  = redisstore.NewRecordScript(codesSource+checkSource, string(done))
	removeScript = redisstore.NewRecordScript(codesSource+removeSource, string(done))
	forgetScript = redisstore.NewRecordScript(codesSource+forgetSource, string(done))
	scripts      = []*redisstore.Script{addScript, recordScript, checkScript, removeScript, forgetScript}
)
