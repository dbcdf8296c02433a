package cluster

import (
	_ "embed"

	"github.com/mailgate/mailgate/redisstore"
)

// The letters that the scripts answer with.
const (
	done     = '+' // given, kept or ended: written in any case
	mismatch = 'x'
	replay   = '='
	held     = '-' // by another lease
)

var (
	//go:embed scripts/request.lua
	requestSource string
	//go:embed scripts/begin.lua
	beginSource string
	//go:embed scripts/finish.lua
	finishSource string
	//go:embed scripts/abandon.lua
	abandonSource string

	beginScript   = redisstore.NewRecordScript(requestSource+beginSource, string(done))
	finishScript  = redisstore.NewRecordScript(requestSource+finishSource, string(done))
	abandonScript = redisstore.NewRecordScript(requestSource+abandonSource, string(done))
	scripts       = []*redisstore.Script{beginScript, finishScript, abandonScript}
)
