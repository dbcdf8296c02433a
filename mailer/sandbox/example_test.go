package sandbox_test

import (
	"context"
	"fmt"
	"net/smtp"

	"github.com/mailgate/mailgate/mailer/sandbox"
)

func Example() {
	box, err := sandbox.Start(sandbox.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	err = smtp.SendMail(box.Addr(), nil, "no-reply@acme.example", []string{"alice@example.com"},
		[]byte("Subject: your code\r\n\r\n123456\r\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	mail, err := box.Wait(context.Background(), "alice@example.com")
	fmt.Printf("%s: %q %v\n", mail.Subject, mail.Text, err)
	// Output: your code: "123456\n" <nil>
}
