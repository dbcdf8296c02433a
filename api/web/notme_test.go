package web_test

import (
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/mailgate/mailgate/api/apitest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
)

// A recipient who did not ask follows the link of an email, stops them, and takes it back, without a script. An operator
// sees it in the console.
func TestNotMe_ByLink_StopsAndUndoes(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(s *apitest.Server, o *apitest.Options) {
		own := fstest.MapFS{"code/en/text.txt": {Data: []byte("{{.Code}}\n{{.NotMe}}\n")}}
		o.PublicURL = s.URL
		o.Live.Composer = must.Get(message.NewComposer(must.Get(message.ParseSender("Acme <no-reply@acme.example>"))(t), must.Get(message.LoadTemplates(own, "en"))(t)))(t)
	})
	v := newVisitor(t)
	s.sendCode("alice@example.com")
	link := regexp.MustCompile(`http://\S+/not-me/\S+`).FindString(s.Relay.List()[0].Text)
	suppressed := func() int {
		return len(must.Get(s.Options.Suppressions.Find(must.Get(address.Parse("alice@example.com", s.Options.Identity))(t)))(t))
	}
	says := func(title, button string) {
		t.Helper()
		v.isTrue(`document.querySelector("h1")?.textContent === "` + title + `" && document.querySelector("button")?.textContent === "` + button + `"`)
	}
	v.visit(link)
	says("Didn't ask for this email?", "It wasn't me: stop these emails")
	v.is("document.scripts.length", "0")
	v.looksRight("not-me", "button")
	if suppressed() != 0 {
		t.Error("the link alone stops the emails")
	}
	v.click("button")
	says("These emails are stopped", "Undo")
	v.looksRight("not-me-stopped", "button")
	if suppressed() != 1 {
		t.Error("the emails are not stopped")
	}
	v.click("button")
	says("Undone", "Stop these emails")
	if suppressed() != 0 {
		t.Error("it is not undone")
	}
	v.click("button")
	says("These emails are stopped", "Undo")

	v.signsIn(s)
	v.click("#show-suppressions")
	v.isTrue(`/^alice@example.comnot-me.*link; key /.test(document.getElementById("suppressions").textContent)`)
}
