package cluster

import "github.com/mailgate/mailgate/redisstore"

var (
	fixedTakeScript      = takes("fixed_window_take")
	fixedReleaseScript   = releases("fixed_window_release")
	slidingTakeScript    = takes("sliding_window_take")
	slidingReleaseScript = releases("sliding_window_release")
	bucketTakeScript     = takes("bucket_begin", "bucket_take")
	fixedRecordScript    = records("fixed_window_record")
	slidingRecordScript  = records("sliding_window_record")
	bucketRecordScript   = records("bucket_begin", "bucket_record")
	bucketReleaseScript  = releases("bucket_begin", "bucket_release")
	meterLookScript      = looks(program("meter_head", "meter_look"), readState)
	meterResetScript     = looks(program("meter_head", "meter_reset"), readState)

	meterScripts = []*redisstore.Script{
		fixedTakeScript.Script, fixedReleaseScript, slidingTakeScript.Script, slidingReleaseScript,
		bucketTakeScript.Script, bucketReleaseScript, meterLookScript.Script, meterResetScript.Script,
		fixedRecordScript.Script, slidingRecordScript.Script, bucketRecordScript.Script,
	}
)

// takes makes a meter's script that decides.
func takes(names ...string) script {
	return decides(program("meter_begin")+program(names...)+program("meter_admit"), readState)
}

// records makes a meter's script that takes up sends from elsewhere.
func records(names ...string) script {
	return decides(program("meter_record_begin")+program(names...)+program("meter_record_end"), readState)
}

// releases makes a meter's script that gives back.
func releases(names ...string) *redisstore.Script {
	return redisstore.NewScript(program("meter_begin", "meter_keep")+program(names...), nil)
}
