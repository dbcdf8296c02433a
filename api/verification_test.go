package api_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// signUp is a purpose, in the body of a send or a check.
const signUp = `,"purpose":"sign-up"`

// try types a code. The body may have more.
func (r *rig) try(email, code string, more ...string) reply {
	r.t.Helper()
	return r.do("POST", "/verify-code", appKey, `{"email":`+quote(email)+`,"code":`+quote(code)+strings.Join(more, "")+`}`)
}

// mailed sends a code to an address and reads it there.
func (r *rig) mailed(email string) string {
	r.t.Helper()
	r.send(email).is(r.t, 200, "")
	return sixDigits.FindString(r.arrived(email).Text)
}

// wrong is another code.
func wrong(code string) string {
	return strings.NewReplacer("0", "1", "1", "2", "2", "3", "3", "4", "4", "5", "5", "6", "6", "7", "7", "8", "8", "9", "9", "0").Replace(code)
}

// A code proves the address that it was mailed to, in any letter case and as people type it, once, and
// no alias.
func TestVerify_RightCode_ProvesItsAddressOnce(t *testing.T) {
	r := newRig(t, setup{policy: "minute=9/60s"})
	first := r.mailed("Alice@example.com")
	second := r.mailed("alice+shop@example.com")
	r.try("other@example.com", first).is(t, 410, "code-expired")
	if first != second {
		got := r.try("alice+shop@example.com", first)
		got.is(t, 422, "code-incorrect")
		got.says(t, fields{"detail": "The code is wrong for this address and purpose."})
	}
	got := r.try("ALICE@example.com", " "+first[:3]+"-"+first[3:])
	got.reads(t, `{"verified":true}`)
	for email, code := range map[string]string{"alice@example.com": first, "alice+shop@example.com": second} {
		r.try(email, code).is(t, 410, "code-expired")
	}
	r.has(t, `mailgate_codes_checked_total{result="correct"} 1`, `mailgate_codes_checked_total{result="expired"} 3`)
}

// A code is right for its purpose only; for another it is answered byte for byte as a wrong code is.
func TestVerify_Purposes_AreApart(t *testing.T) {
	const email, other = "proved@example.com", `,"purpose":"p-------------------------------"`
	r := newRig(t, setup{policy: "minute=9/60s"})
	code := r.mailed(email)
	r.sendAs(appKey, email, signUp).is(t, 200, "")
	forSignUp := sixDigits.FindString(r.arrived(email).Text)
	if code == forSignUp {
		t.Skip("once in a million both codes are one")
	}
	var answers []string
	for _, guess := range [][2]string{{wrong(code), ""}, {forSignUp, ""}, {code, signUp}, {code, other}, {forSignUp, other}} {
		got := r.try(email, guess[0], guess[1])
		got.is(t, 422, "code-incorrect")
		answers = append(answers, got.text)
		r.do("POST", "/admin/mailboxes/"+email+"/reset", opsKey, "").is(t, 200, "")
	}
	if all := slices.Compact(answers); len(all) != 1 {
		t.Errorf("wrong codes and those of another purpose are answered\n%s", strings.Join(all, "\n"))
	}
	r.try("PROVED@example.com", forSignUp, signUp).is(t, 200, "")
	r.try(email, code).is(t, 410, "code-expired") // the right one uses up all
}

// After five wrong guesses none is checked for ten minutes, also with a new code. The answers count
// them down, and an operator can reset them.
func TestVerify_GuessesSpent_RefusedUntilReset(t *testing.T) {
	r := newRig(t, setup{policy: "minute=9/60s"})
	code := r.mailed("guessed@example.com")
	for left := 4; left >= 0; left-- {
		got := r.try("guessed+alias@example.com", wrong(code))
		got.is(t, 422, "code-incorrect")
		if got.body["guesses_left"] != float64(left) || (got.body["limit"] == "ten-minutes") != (left == 0) {
			t.Errorf("answered %s", got.text)
		}
		got.carries(t, map[string]string{"RateLimit-Policy": `"ten-minutes";q=5;w=600, "day";q=20;w=86400`})
	}
	again := r.mailed("guessed@example.com")
	for _, right := range []string{code, again} {
		got := r.try("guessed@example.com", right)
		got.is(t, 429, "quota-exceeded")
		got.says(t, fields{"rule": "guesses", "limit": "ten-minutes", "wait_ms": 600_000.0, "countdown": nil})
		got.carries(t, map[string]string{"Retry-After": "600", "RateLimit": `"ten-minutes";r=0;t=600, "day";r=15;t=86400`})
	}
	const spent = `"guesses":[{"name":"ten-minutes","limit":5,"window_ms":600000,"remaining":0,"wait_ms":600000},{"name":"day","limit":20,"window_ms":86400000,"remaining":15,"wait_ms":0}],`
	r.do("GET", "/admin/mailboxes/guessed@example.com", opsKey, "").contains(t, spent)
	reset := r.do("POST", "/admin/mailboxes/guessed@example.com/reset", opsKey, `{"reason":"a call"}`)
	reset.is(t, 200, "")
	reset.says(t, fields{"cleared": 2.0, "guesses_cleared": 5.0})
	reset.logged(t, fields{"msg": "mailbox reset", "key": "alex", "guesses_cleared": 5.0}, fields{})
	r.try("guessed@example.com", again).is(t, 200, "")
}

// An invalid code, one for a mailbox without a code, and the right one charge no guess. A code that the
// caller made is the caller's to check.
func TestVerify_NotAGuess_ChargesNone(t *testing.T) {
	r := newRig(t, setup{policy: "minute=99/60s"})
	r.do("POST", "/send-code", appKey, `{"email":"free@example.com","code":"482913"}`).is(t, 200, "")
	r.arrived("free@example.com")
	for range 6 {
		r.try("free@example.com", "482913").is(t, 410, "code-expired")
		r.try("free@example.com", r.mailed("free@example.com")).is(t, 200, "")
	}
	code := r.mailed("free@example.com")
	for rest, want := range map[string]string{
		`"email":"free@example.com","code":"12345"`:                                 "code:invalid",
		`"email":"free@example.com","code":"abcdef"`:                                "code:invalid",
		`"email":"free@example.com","code":"` + strings.Repeat(" ", 60) + `123456"`: "code:invalid",
		`"email":"free@example.com"`:                                                "code:missing",
		`"code":"123456"`:                                                           "email:missing",
		`"email":"free@example.com","code":` + quote(code) + `,"purpose":""`:        "purpose:invalid",
		`"email":"free@example.com","code":"123456","purpose":"Sign up"`:            "purpose:invalid",
		`"email":"free","code":"123456"`:                                            "email:no-at",
		`"email":"free@example.com","code":"123456","verified":true`:                "verified:with-code",
		`"email":"free@example.com","verified":false`:                               "verified:invalid",
		`"email":"free@example.com","verified":true,"purpose":"login"`:              "purpose:with-code",
		`"verified":true`: "email:missing",
	} {
		r.do("POST", "/verify-code", appKey, "{"+rest+"}").isInvalid(t, want)
	}
	r.do("POST", "/verify-code", appKey, `{"email":"free@example.com","verified":1}`).contains(t, "expected true or false (field verified")
	r.do("POST", "/verify-code", appKey, `{"email":"free@example.com","verified":true}`).reads(t, `{"verified":true}`)
	r.try("free@example.com", wrong(code)).says(t, fields{"guesses_left": 4.0})
}

// While codes or guesses cannot be read nothing is sent, charged or verified.
func TestVerify_StorageFails_IsUnavailable(t *testing.T) {
	guesses := &throttletest.Faulty{}
	r := newRig(t, setup{options: func(o *apitest.Options) {
		o.Guesses = guesses.Break(o.Guesses)
	}})
	code := r.mailed("down@example.com")
	guesses.Fail("take")
	r.try("down@example.com", code).is(t, 503, "store-unavailable")
	guesses.Fail()
	r.codes.closed.Store(true)
	r.now.Add(60_000)
	r.send("down@example.com").is(t, 503, "store-unavailable")
	r.sent(1)
	r.charged("down@example.com", 1)
	r.codes.closed.Store(false)
	r.codes.closed.Store(true)
	r.do("POST", "/verify-code", appKey, `{"email":"down@example.com","verified":true}`).is(t, 503, "store-unavailable")
	r.codes.closed.Store(false)
	r.try("down@example.com", code).is(t, 200, "")
	guesses.Fail("reset")
	r.do("POST", "/admin/mailboxes/down@example.com/reset", opsKey, "").isNoReset(t, 1)
}

// A code whose email certainly never left is revoked, and no other. One whose email may have left is
// right.
func TestVerify_EmailNeverLeft_CodeIsRevoked(t *testing.T) {
	const email = "back@example.com"
	var codes []string
	var fails error
	r := newRig(t, setup{policy: "minute=9/60s", options: func(o *apitest.Options) {
		o.Relay = fakeSender(func(_ context.Context, text []byte) error {
			codes = append(codes, sixDigits.FindString(string(text)))
			journal.private(codes...)
			return fails
		})
	}})
	r.sendAs(appKey, email, signUp).is(t, 200, "")
	fails = &relay.Error{Outcome: relay.Unavailable}
	r.sendAs(appKey, email, signUp).is(t, 503, "relay-unavailable")
	r.try(email, codes[1], signUp).is(t, 422, "code-incorrect")
	r.try(email, codes[0], signUp).is(t, 200, "")
	fails = &relay.Error{Outcome: relay.Unknown}
	r.sendAs(appKey, email, signUp).is(t, 504, "delivery-unknown")
	r.try(email, codes[2], signUp).is(t, 200, "")
}
