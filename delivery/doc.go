// Package delivery emails codes and checks them. It knows neither HTTP nor SMTP: a caller asks
// for a [Send], and gets a [Result] or an [Error] whose [Kind] says what became of the email.
//
//	attempt, replay, err := service.Begin(ctx, requestID, name, body) // or service.Attempt(ctx, requestID)
//	result, err := attempt.Send(send)
//	if attempt.Answered() {
//		attempt.Finish(answer) // the caller's answer to result or err
//	}
//
// An email that another program has written may have several recipients. It leaves to all of them or to none:
//
//	attempt := service.Attempt(ctx, requestID)
//	result, err := attempt.Charge(send) // of each recipient
//	first, err := attempt.Claim(requests, to, name)
//	err = attempt.HandOver(ctx, envelope, text) // or attempt.Abandon()
//	attempt.Finish(answer)
//
// An attempt takes these steps, and each may end it:
//
//	suppressions.Find       unless the recipient is to get no email
//	rules.Take              no rule denies it, and all limits admit it and are charged
//	wait                    until its position in a queue has come
//	codes.Issue             of a Send, unless the caller made the code
//	composer.Compose        of a Send
//	relay.Begin             up to the relay's readiness for the text
//	requests.HandOver       under a key: the email may leave from now on
//	transaction.Commit
//	requests.Finish         under a key: the answer is kept
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
