// Package submission is the SMTP door, for programs that can only be told an SMTP server. It charges each
// recipient as the HTTP API does, and hands the text to the relay.
//
// A connection has one goroutine, which reads a command, answers it and reads the next; conn has its reader, its
// writer and all deadlines. A session is what its client has said. An email in it is a [delivery.Attempt]:
//
//	AUTH      the name and the secret of an API key
//	MAIL      the sender must be one of Options.Senders
//	RCPT      Attempt.Charge
//	DATA      Attempt.Claim, which knows a repeat; Attempt.HandOver, and the relay's answer is the reply
//	RSET      Attempt.Abandon, as at the end of a connection
//
// There is no queue: an email that the relay has not taken is refused, and nothing of it is kept.
package submission
