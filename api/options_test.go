package api_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
)

func TestNew_ShortSecret_Fails(t *testing.T) {
	o := newRig(t, setup{}).options
	o.Secret = []byte("fifteen letters")
	if _, err := api.New(o); err == nil || !strings.HasPrefix(err.Error(), "api: Secret: ") {
		t.Error(err)
	}
}
