package delivery

import (
	"context"
	"time"

	"github.com/mailgate/mailgate/internal/trace"
	"github.com/mailgate/mailgate/mailer/relay"
)

// Relay opens transactions, as *relay.Relays does. After an error of Begin the email certainly never left,
// or was rejected. An error of Commit that package relay does not know counts as an email that may have left.
type Relay interface {
	Begin(ctx context.Context, e relay.Envelope) (relay.Tx, error)
}

// handOver gives an email to a relay. The email may leave once leaving has returned without an error.
func (s *Service) handOver(ctx context.Context, e relay.Envelope, text []byte, leaving func() error) (said relay.Receipt, err error) {
	began := time.Now()
	ctx, span := trace.Start(ctx, "relay")
	defer func() {
		span.Set("relay", said.Relay)
		span.End(outcome(err))
	}()
	tx, err := s.o.Relay.Begin(ctx, e)
	if err == nil {
		defer tx.Abort() // does nothing after Commit
		if err := leaving(); err != nil {
			return said, err
		}
		said, err = tx.Commit(text)
	}
	s.o.Metrics.Relays.WithLabelValues(outcome(err)).Observe(time.Since(began).Seconds())
	return said, err
}
