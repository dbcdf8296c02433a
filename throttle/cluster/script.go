package cluster

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

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

var (
	errReply = errors.New("Redis sent a reply of an unknown form")
	errLate  = errors.New("Redis ran the call after its deadline, and did nothing")
)

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

// reply is what a script returns.
type reply struct {
	done  byte // a digit, or tooLate
	now   int64
	state []byte
}

const tooLate = '-'

func parseReply(answer any) (r reply, err error) {
	text, _ := answer.(string)
	if len(text) < 7 {
		return r, errReply
	}
	var now [8]byte
	copy(now[2:], text[1:7])
	return reply{text[0], int64(binary.BigEndian.Uint64(now[:])), []byte(text[7:])}, nil
}

// did reports whether the step was done, now or before.
func (r reply) did() bool { return r.done == '1' || r.done == '2' }

// wrote reports whether replicas have to confirm what a script did.
func wrote(answer any) bool {
	r, err := parseReply(answer)
	return err == nil && r.did()
}

// Do implements throttle.Home.
func (h *home) Do(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	key = h.prefix + key + "}"
	ask := func(ctx context.Context) (throttle.Reply, error) { return h.ask(ctx, key, op) }
	switch {
	case h.memory != nil:
		return h.memory.do(ctx, key, op, &h.clocks, ask)
	case op.Step == throttle.StepRecall:
		return throttle.Reply{}, nil
	}
	return ask(ctx)
}

// ask has the server take a step. If it says that the call's time is over while the caller still
// waits, the server or its clock has changed: the step is taken once more, by the clock that has just
// been learnt.
func (h *home) ask(ctx context.Context, key string, op throttle.Op) (throttle.Reply, error) {
	script, params, err := scriptOf(op.By)
	if err != nil {
		return throttle.Reply{}, err
	}
	ctx = redisx.Call(ctx)
	for range 2 {
		sent := h.clocks.since()
		args := []any{string(op.Step), encode(op.All), h.notAfter(ctx, key, op.Step), params}
		if h.memory != nil && op.Step != throttle.StepTake && op.Step != throttle.StepPeek {
			args = append(args, h.memory.channel)
		}
		answer, err := script.Run(ctx, h.client, key, args...)
		if err != nil {
			return throttle.Reply{}, unchanged(err)
		}
		r, err := parseReply(answer)
		if err != nil {
			return throttle.Reply{}, err
		}
		h.clocks.of(h.clocks.masterOf(key)).heard(r.now, sent, h.clocks.since())
		if r.done != tooLate {
			return throttle.Reply{State: r.state, Now: r.now, Done: r.did()}, nil
		}
		if err := ctx.Err(); err != nil {
			return throttle.Reply{}, err
		}
	}
	return throttle.Reply{}, errLate
}

// notAfter returns the server's time after which no caller waits for the answer, empty if that
// is not known. A release is right however late it is made.
func (h *home) notAfter(ctx context.Context, key string, step throttle.Step) string {
	now, known := h.clocks.of(h.clocks.masterOf(key)).latest(h.clocks.since())
	wait := h.timeout
	if end, bounded := ctx.Deadline(); bounded && (wait <= 0 || time.Until(end) < wait) {
		wait = time.Until(end)
	}
	if !known || wait <= 0 || step == throttle.StepRelease {
		return ""
	}
	return strconv.FormatInt(now+wait.Milliseconds(), 10)
}

// encode writes admissions as the scripts read them.
func encode(all []throttle.Admission) (text []byte) {
	for _, a := range all {
		text = append(appendNumbers(text, min(max(a.At, 0), maxMoment)), a.ID[:]...)
	}
	return text
}

// unchanged says where a failed script certainly recorded nothing.
func unchanged(err error) error {
	if redisx.Undone(err) {
		return fmt.Errorf("%w: %w", throttle.ErrUnchanged, err)
	}
	return err
}
