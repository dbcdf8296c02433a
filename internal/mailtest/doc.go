// Package mailtest gives tests a real mail server: Exim, as Debian ships it,
// with TLS, passwords and a mailbox that the test can read.
//
//	func TestMailArrives(t *testing.T) {
//		server := mailtest.Start(t, mailtest.Options{})
//		relays := connect(server.STARTTLS()) // or server.SMTPS()
//		…
//		text := server.Await(t, "alice@example.com")
//	}
//
// The server takes mail from clients that know its password, to any address there
// is, and delivers all of it into one mailbox. What it is to refuse is said in
// [Options]. Nothing it does leaves the machine: no name is looked up and no
// mail is passed on.
//
// It is ready in some tens of milliseconds, listens on free ports of 127.0.0.1,
// keeps its files in a directory of its own and ends with the test, even one
// that panics or is killed. What cannot be done fails the test with a plain
// sentence, so there are no errors to look at. Without the program the test is skipped,
// as package need says.
//
// [StartTokens] is the server that gives the tokens of OAuth 2 which [Server.TakeToken]
// has it take in place of the password.
//
// The program exim4 is copied and run without its set-user-ID bit and, where the test is root, as a
// user without rights; Debian's own Exim service plays no part in this.
package mailtest
