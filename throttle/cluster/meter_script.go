package cluster

import (
	_ "embed"

	"github.com/mailgate/mailgate/redisstore"
)

var (
	//go:embed scripts/meter_begin.lua
	meterBeginSource string
	//go:embed scripts/fixed_window_take.lua
	fixedTakeSource string
	//go:embed scripts/fixed_window_release.lua
	fixedReleaseSource string
	//go:embed scripts/sliding_window_take.lua
	slidingTakeSource string
	//go:embed scripts/sliding_window_release.lua
	slidingReleaseSource string
	//go:embed scripts/bucket_begin.lua
	bucketBeginSource string
	//go:embed scripts/bucket_take.lua
	bucketTakeSource string
	//go:embed scripts/bucket_release.lua
	bucketReleaseSource string
	//go:embed scripts/meter_look.lua
	meterLookSource string
	//go:embed scripts/meter_reset.lua
	meterResetSource string

	fixedTakeScript      = decides(meterBeginSource+fixedTakeSource, readState)
	fixedReleaseScript   = redisstore.NewScript(meterBeginSource+fixedReleaseSource, nil)
	slidingTakeScript    = decides(meterBeginSource+slidingTakeSource, readState)
	slidingReleaseScript = redisstore.NewScript(meterBeginSource+slidingReleaseSource, nil)
	bucketTakeScript     = decides(meterBeginSource+bucketBeginSource+bucketTakeSource, readState)
	bucketReleaseScript  = redisstore.NewScript(meterBeginSource+bucketBeginSource+bucketReleaseSource, nil)
	meterLookScript      = looks(meterLookSource, readState)
	meterResetScript     = looks(meterResetSource, readState)

	meterScripts = []*redisstore.Script{
		fixedTakeScript.Script, fixedReleaseScript, slidingTakeScript.Script, slidingReleaseScript,
		bucketTakeScript.Script, bucketReleaseScript, meterLookScript.Script, meterResetScript.Script,
	}
)
