package api_test

import (
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api"
)

func TestNew_Secrets_Checked(t *testing.T) {
	r := newRig(t, setup{})
	for want, spoil := range map[string]func(*api.Options){
		"api: a secret is both an API key and an admin key": func(o *api.Options) { o.AdminKeys = o.APIKeys },
		"api: Secret: ": func(o *api.Options) { o.Secret = []byte("fifteen letters") },
	} {
		o := r.options
		spoil(&o)
		if _, err := api.New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
