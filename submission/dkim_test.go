package submission_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/mailgate/mailgate/internal/must"
)

// A signature over the whole text holds at the relay: fields are added in front, and nothing is changed.
func TestText_DKIM_SignatureHolds(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must.OK(t, err)
	var signed bytes.Buffer
	must.OK(t, dkim.Sign(&signed, strings.NewReader(letter), &dkim.SignOptions{Domain: "acme.example", Selector: "s", Signer: private}))
	r := start(t, setup{options: withProofs(t)})
	c := r.signedIn()
	c.to(alice)
	c.data(signed.String(), "250") // its only line with a dot is stuffed already
	arrived := r.relay.Mails()[0].Text
	record := "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)
	verify := func(text []byte) error {
		found := must.Get(dkim.VerifyWithOptions(bytes.NewReader(text), &dkim.VerifyOptions{LookupTXT: func(string) ([]string, error) { return []string{record}, nil }}))(t)
		if len(found) != 1 {
			t.Fatalf("%d signatures", len(found))
		}
		return found[0].Err
	}
	if !bytes.HasPrefix(arrived, []byte("X-Mailgate-Proof: ")) || !bytes.Contains(arrived, []byte("\r\nReceived: ")) {
		t.Errorf("%s", arrived)
	}
	if err := verify(arrived); err != nil {
		t.Errorf("the signature does not hold: %v", err)
	}
	if err := verify(bytes.Replace(arrived, []byte("123456"), []byte("123457"), 1)); err == nil {
		t.Error("it holds for another text, too")
	}
}
