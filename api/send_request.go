package api

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/verify"
)

// A sendRequest is what POST /send-code asks for, looked at from every side: only the
// limiter and the relay can still say no.
type sendRequest struct {
	mail    message.Request // without its id and its time
	own     bool            // the caller made the code
	purpose string          // what the code is for, if it was made here
	client  netip.Addr      // the visitor's, as the caller saw it
}

// readSend reads the request and looks at every field, so that a caller learns of all
// that will not do at once. The others are read then too.
func (s *Server) readSend(in *incoming) (sendRequest, error) {
	var email, code, purpose, template, locale, client text
	var data map[string]string
	err := readBody(in, []field{
		{name: "email", text: &email}, {name: "code", text: &code}, {name: "purpose", text: &purpose},
		{name: "template", text: &template}, {name: "locale", text: &locale},
		{name: "client_ip", text: &client}, {name: "data", all: &data},
	})
	if err != nil {
		return sendRequest{}, err
	}
	q := sendRequest{own: code.given, purpose: purpose.value, mail: message.Request{
		Template: template.value, Locale: locale.value, Code: code.value, Data: data,
	}}
	var wrong []fieldProblem
	if q.mail.To, err = s.recipient(email); err != nil {
		wrong = append(wrong, recipientProblem(err))
	}
	wrong = append(wrong, s.mailProblems(in.live.Composer, q)...)
	if client.given {
		if q.client, err = clientOf(client.value); err != nil {
			wrong = append(wrong, fieldProblem{"client_ip", "invalid", "client_ip must be an IPv4 or IPv6 address."})
		}
	}
	if q.own && purpose.given {
		wrong = append(wrong, fieldProblem{"purpose", "with-code", "purpose is for codes that mailgate makes and checks, and this one is your own."})
	} else {
		wrong = append(wrong, purposeProblems(purpose)...)
	}
	if len(wrong) > 0 {
		return q, &problem{kind: invalid, fields: wrong}
	}
	return q, nil
}

var errMissing = errors.New("there is no address")

func (s *Server) recipient(email text) (address.Address, error) {
	if !email.given {
		return address.Address{}, errMissing
	}
	return address.Parse(email.value, s.with.Identity)
}

func recipientProblem(err error) fieldProblem {
	if refused, ok := errors.AsType[*address.Error](err); ok {
		return addressProblem(refused)
	}
	return fieldProblem{"email", "missing", "email is missing."}
}

var errZone = errors.New("the address has a zone")

// clientOf reads an address that a client can have. A zone means something on one
// machine only.
func clientOf(text string) (netip.Addr, error) {
	at, err := netip.ParseAddr(text)
	if err == nil && at.Zone() != "" {
		return netip.Addr{}, errZone
	}
	return at, err
}

// What will do, in place of what a mail does not have yet or what will not do.
const (
	checkID   = "AAAAAAAA"
	checkCode = "000000"
)

var checkTo, _ = address.Parse("somebody@example.com", address.Identity{})

// mailProblems asks the composer what will not do. It tells one thing at a time, so
// each field that it has named is replaced by one that will do, and it is asked again.
func (s *Server) mailProblems(composer *message.Composer, q sendRequest) (wrong []fieldProblem) {
	mail := q.mail
	mail.ID = checkID
	if mail.To.IsZero() {
		mail.To = checkTo
	}
	if !q.own {
		mail.Code, mail.ExpiresInMS = checkCode, verify.DefaultLifetime
	}
	for {
		err, ok := errors.AsType[*message.Error](composer.Check(mail))
		if !ok || named(wrong, err.Field) {
			return wrong
		}
		wrong = append(wrong, composeProblem(err))
		switch err.Field {
		case "code":
			mail.Code = checkCode
		case "template":
			mail.Template = ""
		case "data":
			mail.Data = nil
		default:
			return wrong
		}
	}
}

func named(wrong []fieldProblem, name string) bool {
	return slices.ContainsFunc(wrong, func(f fieldProblem) bool { return f.Field == name })
}

func composeProblem(err *message.Error) fieldProblem {
	reason := "invalid"
	if err.Field == "template" {
		reason = "unknown"
	}
	return fieldProblem{err.Field, reason, err.Field + " " + err.Reason + "."}
}
