package cluster

import (
	_ "embed"

	"github.com/mailgate/mailgate/redisstore"
)

var (
	//go:embed scripts/meter_begin.lua
	meterBeginSource string
	//go:embed scripts/meter_admit.lua
	meterAdmitSource string
	//go:embed scripts/meter_keep.lua
	meterKeepSource string
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
	//go:embed scripts/meter_head.lua
	meterHeadSource string
	//go:embed scripts/meter_look.lua
	meterLookSource string
	//go:embed scripts/meter_reset.lua
	meterResetSource string
	//go:embed scripts/meter_record_begin.lua
	meterRecordBeginSource string
	//go:embed scripts/fixed_window_record.lua
	fixedRecordSource string
	//go:embed scripts/sliding_window_record.lua
	slidingRecordSource string
	//go:embed scripts/bucket_record.lua
	bucketRecordSource string
	//go:embed scripts/meter_record_end.lua
	meterRecordEndSource string

	fixedTakeScript      = takes(fixedTakeSource)
	fixedReleaseScript   = releases(fixedReleaseSource)
	slidingTakeScript    = takes(slidingTakeSource)
	slidingReleaseScript = releases(slidingReleaseSource)
	bucketTakeScript     = takes(bucketBeginSource + bucketTakeSource)
	fixedRecordScript    = records(fixedRecordSource)
	slidingRecordScript  = records(slidingRecordSource)
	bucketRecordScript   = records(bucketBeginSource + bucketRecordSource)
	bucketReleaseScript  = releases(bucketBeginSource + bucketReleaseSource)
	meterLookScript      = looks(meterHeadSource+meterLookSource, readState)
	meterResetScript     = looks(meterHeadSource+meterResetSource, readState)

	meterScripts = []*redisstore.Script{
		fixedTakeScript.Script, fixedReleaseScript, slidingTakeScript.Script, slidingReleaseScript,
		bucketTakeScript.Script, bucketReleaseScript, meterLookScript.Script, meterResetScript.Script,
		fixedRecordScript.Script, slidingRecordScript.Script, bucketRecordScript.Script,
	}
)

// takes makes a meter's script that decides.
func takes(source string) script {
	return decides(meterBeginSource+source+meterAdmitSource, readState)
}

// records makes a meter's script that takes up sends from elsewhere.
func records(source string) script {
	return decides(meterRecordBeginSource+source+meterRecordEndSource, readState)
}

// releases makes a meter's script that gives back.
func releases(source string) *redisstore.Script {
	return redisstore.NewScript(meterBeginSource+meterKeepSource+source, nil)
}
