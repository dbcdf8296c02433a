module github.com/mailgate/mailgate/cmd/mailgate/testdata/clients/gomail

go 1.26.0

require github.com/wneessen/go-mail v0.8.1

require (
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)
