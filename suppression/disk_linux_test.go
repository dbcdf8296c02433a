package suppression_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle"
)

// A change that a full disk does not take is not in force, before and after a restart.
func TestChange_FullDisk_ChangesNothing(t *testing.T) {
	t.Parallel()
	servertest.OnDisk(t, "size=6m", func(mount string) {
		dir := filepath.Join(mount, "data")
		n := open(t, dir, nil)
		n.add("kept@example.com", suppression.Complaint)
		servertest.Fill(t, filepath.Join(mount, "neighbor"))
		var refused string
		for i := 0; refused == "" && i < 100_000; i++ {
			email := fmt.Sprintf("u%d@example.com", i)
			if err := n.Add(t.Context(), of(t, email), suppression.Manual, string(make([]byte, 256))); err != nil {
				refused = email
			}
		}
		if err := n.Lift(t.Context(), of(t, "kept@example.com"), suppression.Complaint); !errors.Is(err, throttle.ErrUnavailable) {
			t.Fatalf("a removal on a full disk: %v", err)
		}
		n.expect("kept@example.com", suppression.Complaint)
		n.expect(refused)
		n.end()
		n = open(t, dir, nil)
		n.expect("kept@example.com", suppression.Complaint)
		n.expect(refused)
	})
}
