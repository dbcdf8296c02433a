package fault_test

import (
	"fmt"
	"net/smtp"
	"testing"
	"time"

	"github.com/mailgate/mailgate/mailer/sandbox/fault"
)

func Example() {
	relay, err := fault.Start(fault.Script{At: fault.RCPT, Kind: fault.Temporary, Times: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer relay.Close()
	for range 2 {
		err = smtp.SendMail(relay.Addr(), nil, "a@acme.example", []string{"b@acme.example"}, []byte("Subject: a\r\n\r\n.\r\n"))
		fmt.Println(err, len(relay.Mails()))
	}
	// Output:
	// 451 "4.3.0 not now, <somebody@secret.example>" 0
	// <nil> 1
}

// TestFaultsShow: a client of the standard library fails at each fault that
// shows without waiting, and only there. EHLO is left out: it falls back to
// HELO.
func TestFaultsShow(t *testing.T) {
	for _, step := range []fault.Step{fault.Banner, fault.MAIL, fault.RCPT, fault.DATA, fault.Dot} {
		for _, kind := range []fault.Kind{
			fault.None, fault.Temporary, fault.Greylist, fault.Permanent, fault.Barred, fault.Leaving, fault.HangUp, fault.Reset,
			fault.Garbage,
		} {
			s, err := fault.Start(fault.Script{At: step, Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			err = smtp.SendMail(s.Addr(), nil, "a@acme.example", []string{"b@acme.example"}, []byte("Subject: a\r\n\r\n"))
			if got, want := err == nil, kind == fault.None; got != want {
				t.Errorf("%s at %s: %v", kind, step, err)
			}
			if want := kind == fault.None || step == fault.Dot; (len(s.Mails()) == 1) != want {
				t.Errorf("%s at %s: %d mails", kind, step, len(s.Mails()))
			}
			s.Close()
		}
	}
}

// What was collected is gone, and each mail says whether the relay refused it.
func TestCollect(t *testing.T) {
	s, err := fault.Start(fault.Script{At: fault.Dot, Kind: fault.Permanent, Times: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		_ = smtp.SendMail(s.Addr(), nil, "a@acme.example", []string{"b@acme.example"}, []byte("Subject: a\r\n\r\n"))
	}
	mails := s.Collect()
	if len(mails) != 2 || !mails[0].Refused || mails[1].Refused || mails[1].ReceivedMS < mails[0].ReceivedMS || mails[0].ReceivedMS == 0 {
		t.Errorf("collected %+v", mails)
	}
	if again := s.Collect(); again != nil || s.Mails() != nil {
		t.Errorf("collected again: %+v", again)
	}
	for deadline := time.Now().Add(10 * time.Second); len(s.Received()) > 0; s.Collect() {
		if time.Now().After(deadline) {
			t.Fatal("connections that have ended are kept")
		}
	}
}
