package web_test

import (
	"testing"

	"github.com/mailgate/mailgate/api/apitest"
)

// seesSignIn notes at each change of the page's address whether the form is gone and still has what was typed: that is
// when a browser offers to keep it.
const seesSignIn = `((form, change) => {
	window.kept = 0;
	history.replaceState = (...to) => {
		change.apply(history, to);
		kept += !form.checkVisibility() && new FormData(form).get("password")?.length > 0;
	};
})(document.getElementById("sign-in"), history.replaceState)`

// A password manager sees a form with a name and a password, and that signing in worked. The page itself keeps the key
// for its tab alone.
func TestConsole_SignIn_SuitsPasswordManagers(t *testing.T) {
	t.Parallel()
	inEachBrowser(t, func(t *testing.T, newVisitor opener) {
		s, v := newServer(t, nil), newVisitor(t)
		v.visit(s.URL + "/admin")
		v.reads("sign-in-title", "Sign in")
		v.is(`[...document.getElementById("sign-in").querySelectorAll("input")].map((one) => [one.name, one.type, one.autocomplete, one.value].join(" ")).join()`,
			"username text username mailgate,password password current-password ")
		v.is(`document.getElementById("sign-in").method`, "post") // else a page whose script is blocked would put the key into its address
		v.run(seesSignIn)
		v.enters("key", apitest.APIKey)
		v.reads("sign-in-note", "This is not an admin key.")
		v.is("kept + key.value.length", "0")
		v.enters("key", apitest.AdminKey)
		v.reads("mailbox-title", "Mailbox")
		v.isTrue("kept > 0")
		v.isTrue("key.value.length + localStorage.length + document.cookie.length === 0 && sessionStorage.length === 1")
		v.is("location.search + location.hash", "")
	})
}
