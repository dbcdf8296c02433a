package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"
)

// forgedASecond are calls with the signature that costs the most to check.
const forgedASecond = 2_000

// forgedCalls compares admitted sends beside a flood of forged calls of SendGrid's hook with those without.
func forgedCalls(b *bench) []row {
	relay := b.openSink()
	key, forger := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	data, _ := b.newDataDir()
	ours := b.startMailgate(relay.addr, data, "MAILGATE_HOOK_SENDGRID="+base64.StdEncoding.EncodeToString(must(x509.MarshalPKIXPublicKey(&key.PublicKey))))

	const body = `[{"email":"a@example.com","event":"bounce","type":"bounce"}]`
	now := strconv.FormatInt(time.Now().Unix(), 10)
	sum := sha256.Sum256([]byte(now + body))
	call := "POST /hooks/sendgrid HTTP/1.1\r\nHost: mailgate.example\r\nX-Twilio-Email-Event-Webhook-Signature: " +
		base64.StdEncoding.EncodeToString(must(ecdsa.SignASN1(rand.Reader, forger, sum[:]))) +
		"\r\nX-Twilio-Email-Event-Webhook-Timestamp: " + now + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	var began time.Time
	var first int64
	flood := b.openConnections(ours.addr, visitors, func(c *connection, n int64) error {
		time.Sleep(time.Until(began.Add(time.Duration(n-first) * time.Second / forgedASecond)))
		return c.ask(call, http.StatusUnauthorized)
	})
	admitted := b.openLoad(ours.addr, senders, sendCode(each), http.StatusOK).on(ours)
	samples := alternate(*rounds, func() sample {
		began, first = time.Now(), flood.next.Load()
		ended := make(chan int64)
		go func() { ended <- flood.run(*length, 1<<62) }()
		s := admitted()
		if forged := <-ended; float64(forged) < 0.9*forgedASecond*length.Seconds() {
			s.rate = 0 // the flood was held up, so this round says nothing good
		}
		return s
	}, admitted)
	return []row{compare("admitted send beside 2,000 forged calls of a hook a second", "sends/s", "without them", rate, samples[0], samples[1], atLeast(0.8))}
}
