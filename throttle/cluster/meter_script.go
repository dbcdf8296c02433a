package cluster

import _ "embed"

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

	fixedTakeScript      = newScript(meterBeginSource+fixedTakeSource, readState)
	fixedReleaseScript   = newScript(meterBeginSource+fixedReleaseSource, nil)
	slidingTakeScript    = newScript(meterBeginSource+slidingTakeSource, readState)
	slidingReleaseScript = newScript(meterBeginSource+slidingReleaseSource, nil)
	bucketTakeScript     = newScript(meterBeginSource+bucketBeginSource+bucketTakeSource, readState)
	bucketReleaseScript  = newScript(meterBeginSource+bucketBeginSource+bucketReleaseSource, nil)
	meterLookScript      = newScript(meterLookSource, readState)
	meterResetScript     = newScript(meterResetSource, readState)

	meterScripts = []*script{
		fixedTakeScript, fixedReleaseScript, slidingTakeScript, slidingReleaseScript,
		bucketTakeScript, bucketReleaseScript, meterLookScript, meterResetScript,
	}
)
