package api_test

import (
	"testing"
)

// A suppressed mailbox gets no email, and looks at it say why.
func TestSuppress_Mailbox_RefusedAndShown(t *testing.T) {
	r := newRig(t, setup{})
	path := "/admin/suppressions/Carol+x@example.com"
	got := r.do("PUT", path, opsKey, `{"source":"ticket 4711"}`)
	got.is(t, 204, "")
	got.logged(t, fields{"msg": "recipient suppressed", "key": "alex", "reason": "manual", "source": "ticket 4711", "mailbox": something}, fields{})
	got = r.send("carol@example.com")
	got.is(t, 422, "recipient-suppressed")
	got.says(t, fields{"reason": "manual", "until": nil})
	r.charged("carol@example.com", 0)
	r.sent(0)
	r.do("GET", "/mailboxes/carol@example.com", appKey, "").contains(t, `"suppressed":{"reason":"manual","until":null}`)
	r.do("POST", "/mailboxes/peek", appKey, `{"email":"carol@example.com"}`).contains(t, `"suppressed":{"reason":"manual","until":null}`)
	r.do("GET", "/admin/mailboxes/carol@example.com", opsKey, "").contains(t, `"suppressions":[{"email":"carol@example.com","reason":"manual","until":null,"source":"ticket 4711","since":"2026-11-20T12:00:00.000Z"}]`)
	r.do("GET", "/admin/suppressions", opsKey, "").reads(t, `{"suppressions":[{"email":"carol@example.com","reason":"manual","until":null,"source":"ticket 4711","since":"2026-11-20T12:00:00.000Z"}]}`)
	r.do("GET", "/metrics", "", "").contains(t, `mailgate_suppressed_sends_total{reason="manual"} 1`, `mailgate_suppressions{reason="manual"} 1`, `mailgate_suppressions{reason="complaint"} 0`)

	got = r.do("DELETE", path, opsKey, "")
	got.is(t, 204, "")
	got.logged(t, fields{"msg": "suppression removed", "key": "alex", "mailbox": something}, fields{})
	r.send("carol@example.com").is(t, 200, "")
	r.do("DELETE", path, opsKey, "").is(t, 204, "")
}

// A bounce suppresses the address alone, for thirty days.
func TestSuppress_HardBounce_AddressAlone(t *testing.T) {
	r := newRig(t, setup{})
	r.do("PUT", "/admin/suppressions/Dave+x@example.com", opsKey, `{"reason":"hard-bounce"}`).is(t, 204, "")
	r.send("dave@example.com").is(t, 200, "")
	r.now.Add(60_000)
	r.send("dave+x@example.com").says(t, fields{"reason": "hard-bounce", "until": "2026-12-20T12:00:00.000Z"})
	r.now.Add(30 * day)
	r.send("dave+x@example.com").is(t, 200, "")
}

// A retry is decided anew, as after a refusal by a limit.
func TestSend_SuppressedUnderAKey_KeyIsFree(t *testing.T) {
	r := newRig(t, setup{})
	r.do("PUT", "/admin/suppressions/erin@example.com", opsKey, `{"reason":"complaint"}`).is(t, 204, "")
	again := func() reply {
		return r.ask("POST", "/send-code", "x", "Authorization: Bearer "+appKey+"\r\nIdempotency-Key: one\r\n", `{"email":"erin@example.com"}`)
	}
	again().is(t, 422, "recipient-suppressed")
	r.do("DELETE", "/admin/suppressions/erin@example.com", opsKey, "").is(t, 204, "")
	again().is(t, 200, "")
}

func TestSuppress_Invalid_Refused(t *testing.T) {
	r := newRig(t, setup{})
	r.do("PUT", "/admin/suppressions/no-at", opsKey, `{}`).isInvalid(t, "email:no-at")
	r.do("PUT", "/admin/suppressions/a@example.com", opsKey, `{"reason":"bored"}`).isInvalid(t, "reason:invalid")
	r.do("PUT", "/admin/suppressions/a@example.com", opsKey, `{"source":"a\nb"}`).isInvalid(t, "source:invalid")
	for _, c := range []string{"\u202e", "\u2066", "\u200f", "\u2028", "\ufeff", "\u009b"} { // they steer the text around them
		r.do("PUT", "/admin/suppressions/a@example.com", opsKey, `{"source":"a`+c+`b"}`).isInvalid(t, "source:invalid")
	}
	r.do("PUT", "/admin/suppressions/a@example.com", opsKey, `{"reason":null}`).is(t, 400, "bad-request")
	r.do("DELETE", "/admin/suppressions/no-at", opsKey, "").isInvalid(t, "email:no-at")
	r.do("GET", "/admin/suppressions?after=x", opsKey, "").isInvalid(t, "after:invalid")
	r.do("PUT", "/admin/suppressions/a@example.com", appKey, `{}`).is(t, 401, "unauthorized")
	r.do("GET", "/admin/suppressions", appKey, "").is(t, 401, "unauthorized")
	r.do("GET", "/admin/suppressions", opsKey, "").reads(t, `{"suppressions":[]}`)
	_ = r.Store.Close()
	r.do("PUT", "/admin/suppressions/a@example.com", opsKey, "").is(t, 503, "store-unavailable")
	r.do("GET", "/admin/suppressions", opsKey, "").is(t, 503, "store-unavailable")
}
