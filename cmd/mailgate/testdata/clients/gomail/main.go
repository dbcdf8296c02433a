// Gomail sends one email with go-mail.
package main

import (
	"log"
	"os"
	"strconv"

	"github.com/wneessen/go-mail"
)

func main() {
	log.SetFlags(0)
	if err := send(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func send(to []string) error {
	port, err := strconv.Atoi(os.Getenv("SMTP_PORT"))
	if err != nil {
		return err
	}
	client, err := mail.NewClient(os.Getenv("SMTP_HOST"), mail.WithPort(port), mail.WithTLSPolicy(mail.TLSOpportunistic),
		mail.WithSMTPAuth(mail.SMTPAuthPlainNoEnc), mail.WithUsername(os.Getenv("SMTP_USER")), mail.WithPassword(os.Getenv("SMTP_PASSWORD")))
	if err != nil {
		return err
	}
	m := mail.NewMsg()
	if err := m.From("no-reply@acme.example"); err != nil {
		return err
	}
	if err := m.To(to...); err != nil {
		return err
	}
	m.Subject("code")
	m.SetBodyString(mail.TypeTextPlain, "123456")
	return client.DialAndSend(m)
}
