// Package redistest gives tests real Redis: one server, a cluster, a master
// watched by sentinels, and a proxy that breaks connections on purpose.
//
//	func TestTake(t *testing.T) {
//		server := redistest.Alone(t, "appendonly yes")
//		limiter := connect(server.URL())
//		…
//		server.Kill()    // as a crash would
//		server.Restart() // same port, same files
//	}
//
//	func TestAnswerLost(t *testing.T) {
//		proxy := redistest.Proxy(t, redistest.Alone(t).Addr)
//		limiter := connect(proxy.URL())
//		proxy.CutReplies(1, "evalsha") // carried out, but the caller never hears of it
//		…
//	}
//
// [Alone] is ready in some ten milliseconds, [Sentinel] in half a second and
// [Cluster] in two, and failovers take some seconds: a test file does well to
// share a cluster among subtests.
//
// Everything listens on free ports of 127.0.0.1, keeps its files in the test's
// temporary directory and ends with the test, even one that panics or is
// killed. What cannot be done fails the test with a plain sentence, so there
// are no errors to look at. Functions that can fail the test at once (the ones
// that start or wait for something) want to be called from the test's own
// goroutine; Kill, Pause, Resume and the switches of a proxy may be called from
// any.
//
// The program redis-server, version 7.0 or newer, is looked up in PATH.
package redistest
