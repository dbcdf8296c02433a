// Package delivery emails codes and checks them. It knows neither HTTP nor SMTP: a caller asks
// for a [Send], and gets a [Result] or an [Error] whose [Kind] says what became of the email.
//
//	attempt, replay, err := service.Begin(ctx, requestID, name, body) // or service.Attempt(ctx, requestID)
//	result, err := attempt.Send(send)
//	if attempt.Answered() {
//		attempt.Finish(answer) // the caller's answer to result or err
//	}
//
// A send takes these steps, and each may end it:
//
//	suppressions.Find       unless the recipient is to get no email
//	rules.Take              no rule denies it, and all limits admit it and are charged
//	wait                    until its position in a queue has come
//	codes.Issue             unless the caller made the code
//	composer.Compose
//	relay.Begin             up to the relay's readiness for the text
//	requests.HandOver       with an Idempotency-Key: the email may leave from now on
//	transaction.Commit
//	requests.Finish         with an Idempotency-Key: the answer is kept
//
// An email that another program has written is a [Mail]: its recipients are charged one by one, by the
// same steps, and it leaves to all of them or to none.
//
//	mail := service.Mail(ctx)
//	result, err := mail.Charge(rules, to, traits)
//	err = mail.HandOver(ctx, envelope, text) // or mail.Abandon()
//
// # What is charged
//
// An email that certainly never left is refunded: its quota, its code and its key. One that
// may have left stays charged, and its answer is kept, so that no retry sends it again.
// Rejected and Unknown are final in the same way.
//
// # Crashes
//
// A key whose attempt was killed is in flight until its lease ends. A retry then starts anew
// if the email was not handed over, and first refunds what the exact rules were charged. If
// it was handed over, the email may have left: the answer is Unknown, and nothing is sent. An
// attempt that resumes after its lease cannot hand over, and refunds its own charge.
package delivery
