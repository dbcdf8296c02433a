package fault_test

import (
	"fmt"
	"net/smtp"
	"testing"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
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
	// 451 "4.3.0 not now, <recipient@secret.example>" 0
	// <nil> 1
}

// What was collected is gone, and each email says whether the relay refused it.
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
	servertest.Eventually(t, "connections that have ended are not kept", func() bool {
		s.Collect()
		return len(s.Received()) == 0
	})
}
