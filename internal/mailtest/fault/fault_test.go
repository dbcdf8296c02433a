package fault_test

import (
	"fmt"
	"net/smtp"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
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
