// Package submission is the SMTP door: it takes email from programs that can only be told an SMTP
// server, charges each recipient as the HTTP API does, and hands the text to the relay.
//
// A connection is a conn, which has all deadlines, under an smtp.Server of its own. Its session adapts
// the commands of one email to a [delivery.Mail]:
//
//	AUTH      the name and the secret of an API key
//	MAIL      the sender must be one of Options.Senders
//	RCPT      Mail.Charge
//	DATA      Mail.HandOver, and the relay's answer is the reply
//	RSET      Mail.Abandon, as at the end of a connection
//
// There is no queue: an email that the relay has not taken is refused, and nothing of it is kept.
package submission
