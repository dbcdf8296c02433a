package proof_test

import (
	"fmt"
	"net/mail"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/proof"
	"github.com/mailgate/mailgate/throttle"
)

const now = int64(1795176000000)

var (
	current = []byte("the secret that is in use")
	former  = []byte("a secret that was in use")
)

func parse(t *testing.T, text string) address.Address {
	return must.Get(address.Parse(text, must.Get(address.NewIdentity(true))(t)))(t)
}

// A proof is of one address as spelled, apart from letter case, and of one secret, and ends.
func TestFind_AddressSecretAndTime_AllCount(t *testing.T) {
	old := must.Get(proof.New(nil, former))(t)
	p := must.Get(proof.New(nil, current, former))(t)
	alice := parse(t, "Alice+x@Example.com")
	id := throttle.NewID()
	mine, theirs := p.Make(id, now, alice), old.Make(id, now, alice)
	for name, c := range map[string]struct {
		in    string
		to    string
		at    int64
		found string
		other bool
	}{
		"its address":          {mine, "Alice+x@example.com", now, mine, false},
		"in lower case":        {"<" + mine + "@acme.example>", "alice+x@example.com", now, mine, false},
		"an earlier secret":    {theirs, "alice+x@example.com", now, theirs, false},
		"the second of two":    {p.Make(id, now, parse(t, "bob@example.com")) + " " + mine, "alice+x@example.com", now, mine, false},
		"quoted in JSON":       {`"\u003c` + mine + `"`, "alice+x@example.com", now, mine, false},
		"its mailbox":          {mine, "alice@example.com", now, "", true},
		"another mailbox":      {mine, "bob@example.com", now, "", true},
		"another id":           {"x" + mine[1:], "alice+x@example.com", now, "", mine[0] != 'x'},
		"another time":         {strings.Replace(mine, ".1", ".2", 1), "alice+x@example.com", now, "", true},
		"after its life":       {mine, "alice+x@example.com", now + proof.Life, "", true},
		"nothing":              {"", "alice+x@example.com", now, "", false},
		"another program's id": {"<20180812214658.1.0DF563D0B3597700@example.org>", "alice+x@example.com", now, "", false},
	} {
		if found, other := p.Find(c.in, parse(t, c.to), c.at); found != c.found && name != "another id" || other != c.other {
			t.Errorf("%s: found %q, another: %t", name, found, other)
		}
	}
	if found, other := must.Get(proof.New(nil, current))(t).Find(theirs, alice, now); found != "" || !other {
		t.Errorf("the proof of a secret that is not set counts")
	}
	if _, err := proof.New(nil, current, []byte("short")); err == nil {
		t.Error("a short secret is taken")
	}
}

// Each provider finds the proofs of all recipients in the field that it returns; a line has 998 octets at most.
func TestFields_EachProvider_AsItReturnsThem(t *testing.T) {
	var proofs []string
	p := must.Get(proof.New([]string{"ses", "sendgrid", "mailgun", "postmark", "resend", "brevo"}, current))(t)
	for i := range 100 {
		proofs = append(proofs, p.Make(throttle.NewID(), now, parse(t, fmt.Sprintf("a%d@example.com", i))))
	}
	fields := p.Fields(proofs)
	for line := range strings.SplitSeq(fields, "\r\n") {
		if len(line) > 998 {
			t.Errorf("a line has %d octets", len(line))
		}
	}
	read := must.Get(mail.ReadMessage(strings.NewReader(fields + "\r\n")))(t).Header
	all := strings.Join(proofs, " ")
	for name, want := range map[string]string{
		"X-Mailgate-Proof": all, "X-Mailin-Custom": "mailgate:" + all, "X-Mailgun-Variables": `{"mailgate":"` + all + `"}`,
		"X-Smtpapi": `{"unique_args":{"mailgate":"` + all + `"}}`, "X-Pm-Metadata-Mailgate": proofs[0], "X-Pm-Metadata-Mailgate-9": proofs[9],
		"X-Pm-Metadata-Mailgate-10": "",
	} {
		if got := read.Get(name); got != want || len(read[name]) > 1 {
			t.Errorf("%s: %.200s\nwant %.200s", name, got, want)
		}
	}
	if none := must.Get(proof.New(nil, current))(t).Fields(proofs); len(none) != 0 {
		t.Errorf("without providers: %.100s", none)
	}
	if len(proofs[0]) > 80 { // what Postmark keeps of a value
		t.Errorf("a proof has %d octets", len(proofs[0]))
	}
}
