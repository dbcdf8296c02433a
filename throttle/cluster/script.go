package cluster

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
)

var (
	//go:embed begin.lua
	begin string
	//go:embed tiers.lua
	tiers string
	//go:embed fixed_window.lua
	fixedWindow string
	//go:embed sliding_window.lua
	slidingWindow string
	//go:embed bucket.lua
	bucket string

	tiersScript         = redisx.NewScript(begin+tiers, wrote)
	fixedWindowScript   = redisx.NewScript(begin+fixedWindow, wrote)
	slidingWindowScript = redisx.NewScript(begin+slidingWindow, wrote)
	bucketScript        = redisx.NewScript(begin+bucket, wrote)
)

// What was done before counts as written: replicas may not have confirmed it then.
var wrote = redisx.Did("12")

var errLate = errors.New("Redis ran the call after its deadline, and did nothing")

// maxMoment is the last millisecond that fits the six bytes of an admission.
const maxMoment = 1<<48 - 1

// scriptOf returns the script that takes the steps of an algorithm, and its parameters.
func scriptOf(a throttle.Algorithm) (script *redisx.Script, params []byte, err error) {
	if a == nil || a.Form() == "" {
		return nil, nil, fmt.Errorf("the algorithm %T is a zero value", a)
	}
	switch a := a.(type) {
	case throttle.Policy:
		params = appendNumbers(nil, throttle.MaxKept, a.Window())
		for _, t := range a.Tiers() {
			params = appendNumbers(params, int64(t.Limit), t.Window.Milliseconds())
		}
		return tiersScript, params, nil
	case throttle.FixedWindow:
		return fixedWindowScript, tierParams(a.Tier()), nil
	case throttle.SlidingWindow:
		return slidingWindowScript, appendNumbers(tierParams(a.Tier()), a.Part()), nil
	case throttle.TokenBucket:
		return bucketScript, appendNumbers(tierParams(a.Tier()), int64(a.Room()), 0), nil
	case throttle.LeakyBucket:
		return bucketScript, appendNumbers(tierParams(a.Tier()), int64(a.Room()), 1), nil
	}
	return nil, nil, fmt.Errorf("there is no script for a %T", a)
}

func tierParams(t throttle.Tier) []byte {
	return appendNumbers(nil, t.Window.Milliseconds(), int64(t.Limit))
}

// appendNumbers appends numbers of six bytes, as the scripts read them.
func appendNumbers(text []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		text = binary.BigEndian.AppendUint16(text, uint16(n>>32))
		text = binary.BigEndian.AppendUint32(text, uint32(n))
	}
	return text
}

// maxTries bounds how often a step is sent. It comes too late by the server's clock, though the caller still waits, before the
// first answer, after a slow one, or when that clock was set. It is then sent again, by the clock that the answer told.
const maxTries = 5

// Do implements throttle.Home.
func (h *home) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	script, params, err := scriptOf(op.By)
	if err != nil || op.Step == throttle.StepRecall {
		return throttle.Reply{}, err
	}
	key = h.prefix + key + "}"
	ctx = redisx.Call(ctx)
	for range maxTries {
		end := ""
		if op.Step != throttle.StepRelease { // which is right however late it is made
			end = h.records.End(ctx, key)
		}
		answer, err := h.records.Run(ctx, script, key, string(op.Step), encode(op.All), end, params)
		if err != nil {
			if redisx.Undone(err) {
				err = fmt.Errorf("%w: %w", throttle.ErrUnchanged, err)
			}
			return throttle.Reply{}, err
		}
		if answer.Did == '0' && (op.Step == throttle.StepRelease || op.Step == throttle.StepReset) {
			if err := h.records.Confirm(ctx, key); err != nil {
				return throttle.Reply{}, err
			}
		}
		if answer.Did != '-' {
			return throttle.Reply{State: answer.Before, Now: answer.Now, Done: answer.Did != '0'}, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return throttle.Reply{}, fmt.Errorf("%w: %w", throttle.ErrUnchanged, errLate)
}

// encode writes admissions as the scripts read them.
func encode(all []throttle.Admission) (text []byte) {
	for _, a := range all {
		text = append(appendNumbers(text, min(max(a.At, 0), maxMoment)), a.ID[:]...)
	}
	return text
}
