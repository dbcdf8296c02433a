package delivery

import (
	"context"
	"errors"

	"github.com/mailgate/mailgate/internal/idempotency"
	"github.com/mailgate/mailgate/throttle"
)

// claim is the right to send the email of a request, which is sent once however often the request comes.
type claim struct {
	requests   *idempotency.Requests
	lease      idempotency.Lease
	requestID  string // for the log
	handedOver bool
}

// begin begins a request, or says what came of an earlier one: the state is Started, Replay or Unknown. The
// error is an *Error.
func begin(ctx context.Context, requests *idempotency.Requests, requestID string, name idempotency.Name, body idempotency.Fingerprint) (*claim, idempotency.Outcome, error) {
	o, err := requests.Begin(ctx, name, body)
	switch {
	case err != nil:
		if !errors.Is(err, throttle.ErrUnchanged) {
			// It may have begun all the same. That is undone within the request or not at all.
			_, _ = requests.Abandon(ctx, o.Lease)
		}
		return nil, o, failure(err)
	case o.State == idempotency.Mismatch:
		return nil, o, &Error{Kind: Mismatch}
	case o.State == idempotency.InFlight:
		return nil, o, &Error{Kind: InFlight}
	}
	return &claim{requests, o.Lease, requestID, o.State == idempotency.Unknown}, o, nil
}
