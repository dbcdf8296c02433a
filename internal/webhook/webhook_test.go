package webhook_test

import (
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/webhook"
)

// A header full of signatures costs a caller without a secret more than it costs the server.
func TestGenuine_ManySignatures_OnlyTheFirstAreRead(t *testing.T) {
	secret, at, body := []byte(strings.Repeat("k", webhook.MinSecret)), time.Unix(1795176000, 0), []byte("{}")
	signature := must.Get(must.Get(webhooks.NewWebhookRaw(secret))(t).Sign("msg_1", at, body))(t)
	for wrong, want := range map[int]bool{0: true, 5: true, 10: false, 3800: false} {
		if got := webhook.Genuine([][]byte{secret}, "msg_1", "1795176000", strings.Repeat("x ", wrong)+signature, body, at); got != want {
			t.Errorf("behind %d others: %t", wrong, got)
		}
	}
}
