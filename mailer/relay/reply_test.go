package relay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
)

func TestReply_EachForm_ReadOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		wire string
		code int
		text string
		err  error
	}{
		"one line":          {"250 ok\r\n", 250, "ok", nil},
		"several lines":     {"250-a\r\n250-b c\r\n250 d\r\n", 250, "a\nb c\nd", nil},
		"bare code":         {"250\r\n", 250, "", nil},
		"bare code at last": {"250-a\r\n250\r\n", 250, "a\n", nil},
		"LF alone":          {"250-a\n250 b\n", 250, "a\nb", nil},
		"nothing":           {"", 0, "", errHungUp},
		"half a line":       {"250 o", 0, "", errHungUp},
		"half a reply":      {"250-a\r\n", 0, "", errHungUp},
		"codes differ":      {"250-a\r\n550 b\r\n", 0, "", errNotSMTP},
		"code too small":    {"199 a\r\n", 0, "", errNotSMTP},
		"code too great":    {"600 a\r\n", 0, "", errNotSMTP},
		"no code":           {"ok\r\n", 0, "", errNotSMTP},
		"too many digits":   {"2500 a\r\n", 0, "", errNotSMTP},
		"letters":           {"2x0 a\r\n", 0, "", errNotSMTP},
		"empty line":        {"\r\n250 a\r\n", 0, "", errNotSMTP},
		"endless line":      {"250 " + strings.Repeat("x", mostLineBytes), 0, "", errReplyTooBig},
		"endless lines":     {strings.Repeat("250-x\r\n", mostReplyBytes/7+1), 0, "", errReplyTooBig},
	} {
		for kind, source := range map[string]io.Reader{
			"at once": strings.NewReader(c.wire), "octet by octet": iotest.OneByteReader(strings.NewReader(c.wire)),
		} {
			r := readerOf(source)
			code, err := r.next()
			if code != c.code || !errors.Is(err, c.err) || (err == nil && string(r.text) != c.text) {
				t.Errorf("%s %s: %d %q %v, want %d %q %v", name, kind, code, r.text, err, c.code, c.text, c.err)
			}
		}
	}
}

func readerOf(source io.Reader) *replyReader {
	return &replyReader{Reader: bufio.NewReaderSize(source, mostLineBytes)}
}

func TestReply_EnhancedCodeAndText_Split(t *testing.T) {
	for text, want := range map[string]Reply{
		"5.1.1 no such mailbox":                {550, "5.1.1", "no such mailbox"},
		"5.1.1 no such mailbox\n5.1.1 go away": {550, "5.1.1", "no such mailbox go away"},
		"no such mailbox":                      {550, "", "no such mailbox"},
		"2.1.1 of another class":               {550, "", "2.1.1 of another class"},
		"5.1 too short":                        {550, "", "5.1 too short"},
		"5.1.1000 too long":                    {550, "", "5.1.1000 too long"},
		"5.x.1 letters":                        {550, "", "5.x.1 letters"},
		"5.7.1":                                {550, "5.7.1", ""},
		"#5.1.0 Address rejected.":             {550, "5.1.0", "Address rejected."},
		"no mailbox here (#5.1.1)":             {550, "5.1.1", "no mailbox here"},
		"(#5.1.1)":                             {550, "5.1.1", ""},
		"in the middle (#5.1.1) of it":         {550, "", "in the middle (#5.1.1) of it"},
		"as a number #5.1.1":                   {550, "", "as a number #5.1.1"},
		"of another class (#4.1.1)":            {550, "", "of another class (#4.1.1)"},
		"":                                     {550, "", ""},
		"bell\a and \x1b[31mred\xff":           {550, "", "bell  and  [31mred"},
		"next\u0085line\u2028and \u202eback":   {550, "", "next line and  back"},
		"long " + strings.Repeat("x", 2*mostReplyText): {550, "", "long " + strings.Repeat("x", mostReplyText-5)},
	} {
		if got := *newReply(550, []byte(text)); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if text := (Reply{Code: 550, Message: "no such mailbox"}).String(); text != "550" {
		t.Errorf("without an enhanced code it is %q", text)
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte("250-PIPELINING\r\n250 SIZE 10\r\n354 go\r\n"))
	f.Add([]byte("550 5.1.1 no\r\n250\n"))
	f.Add([]byte("250-a\r\n550 b\r\n"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		whole, pieces := readerOf(bytes.NewReader(wire)), readerOf(iotest.OneByteReader(bytes.NewReader(wire)))
		for {
			code, err := whole.next()
			again, errAgain := pieces.next()
			if code != again || !errors.Is(errAgain, err) || (err == nil && !bytes.Equal(whole.text, pieces.text)) {
				t.Fatalf("at once %d %v, in pieces %d %v", code, err, again, errAgain)
			}
			if err != nil {
				return
			}
			if code < 200 || code > 599 || len(whole.text) > mostReplyBytes {
				t.Fatalf("code %d with %d octets", code, len(whole.text))
			}
			reply := newReply(code, whole.text)
			if strings.ContainsAny(reply.Message, "\r\n\x00") || len(reply.Message) > 2*mostReplyText {
				t.Fatalf("message %q", reply.Message)
			}
		}
	})
}

// What a relay says of us, or of itself, is not the recipient's fault.
// Operators see what the relay said, but no address and no code that a filter quotes.
func TestMasked_EachReply_HasNoAddressAndNoCode(t *testing.T) {
	to := must.Get(address.Parse("Alice.B@example.com", address.Identity{}))(t)
	for want, r := range map[string]Reply{
		"250 2.0.0 Ok: queued as 4B2A1C0001":               {250, "2.0.0", "Ok: queued as 4B2A1C0001"},
		"250 to … queued":                                  {250, "", "to <bob@example.com>: queued"},
		"550 5.1.1 … user … unknown, …":                    {550, "5.1.1", "<ALICE.B@example.com> user alice.b unknown, alice.B"},
		"554 5.7.1 spam: Your code is …, … see http://a/b": {554, "5.7.1", "spam: Your code is 482913, 0048 see http://a/b"},
	} {
		if got := r.Masked(to); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestReply_5xx_OutcomeByProvider(t *testing.T) {
	for text, want := range map[string]Outcome{
		"5.7.1 Relay access denied":                Unavailable,
		"5.7.26 no SPF":                            Unavailable,
		"5.4.5 Daily user sending limit exceeded":  Unavailable,
		"5.3.2 not now":                            Unavailable,
		"5.3.4 too big":                            Unavailable,
		"5.1.7 Bad sender's address syntax":        Unavailable,
		"5.1.8 Access denied, bad outbound sender": Unavailable,
		"5.2.252 SendAsDenied; a@b.example not allowed to send as c@b.example; STOREDRV.Submission.Exception": Unavailable,
		"5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException.MapiExceptionSendAsDenied; Failed":         Unavailable,
		"5.2.0 STOREDRV.Deliver.Exception:AccountDisabledException":                                           Rejected,
		"5.2.0 no such mailbox as STOREDRV.Submission.Exception":                                              Rejected,
		"relay not permitted":                    Unavailable, // Exim, here and below
		"Message size exceeds maximum permitted": Unavailable,
		"Verification failed for <a@b.example>\nUnrouteable address\nSender verify failed":        Unavailable,
		"mailgate.example is not permitted to relay through this server without\nauthentication.": Unavailable,
		"<a@b.example>... Relaying denied":                                                Unavailable,
		"5.1.0 <a@b.example>: Sender address rejected: User unknown":                      Unavailable, // Postfix
		"5.5.2 <localhost>: Helo command rejected: need fully-qualified hostname":         Unavailable,
		"Message rejected: Email address is not verified. The following identities":       Unavailable, // Amazon SES
		"The from address does not match a verified Sender Identity.":                     Unavailable, // SendGrid
		"sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)":               Unavailable, // qmail
		"sorry, no mailbox here by that name. (#5.1.1)":                                   Rejected,
		"#5.7.1 SPF unauthorized mail is prohibited.":                                     Unavailable, // Cisco
		"#5.1.0 Address rejected.":                                                        Rejected,
		"Message rejected: Sending paused for this account. For more information, please": Unavailable,
		"Relaying disallowed as no-reply@acme.example":                                    Unavailable, // Zoho
		"<sender-verify-failed@b.example>: no such user at our relay":                     Rejected,
		"5.1.80 not a word that we know":                                                  Rejected,
		"5.1.1 no such user":                                                              Rejected,
		"5.2.2 over quota":                                                                Rejected,
		"5.4.4 no such host":                                                              Rejected,
		"5.4.50 not a word that we know":                                                  Rejected,
		"no enhanced code, and 5.4.5 further along":                                       Rejected,
		"": Rejected,
	} {
		if got := newReply(550, []byte(text)).outcome(StepFinalDot); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for code, want := range map[int]Outcome{
		500: Rejected, 501: Rejected, 502: Unavailable, 503: Unavailable, 504: Unavailable,
		530: Unavailable, 550: Rejected, 551: Rejected, 552: Rejected, 553: Rejected, 554: Rejected, 556: Rejected,
	} {
		if got := (Reply{Code: code}).outcome(StepRCPT); got != want {
			t.Errorf("%d: %v, want %v", code, got, want)
		}
	}
}
