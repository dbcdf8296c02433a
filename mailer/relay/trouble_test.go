package relay_test

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/mailer/relay"
)

// A trouble is what the first of two relays does to one mail, and what must come of it.
type trouble struct {
	script  fault.Script
	query   string // of the relay's URL, where it wants TLS and a password
	kept    bool   // a mail went through the connection before
	spoil   func(*mail)
	outcome relay.Outcome // of the send; 0: the second relay took the mail
	tried   string        // what each relay that was asked came to
	heard   string        // what the first relay heard: the verbs, the mail's text as TEXT
	resting bool          // whether the first is left alone afterwards
}

// TestSend_Troubles_NextRelayAndCircuit: what becomes of a mail in trouble, what goes over the wire, who is asked
// next, and what it does to the mails after it.
func TestSend_Troubles_NextRelayAndCircuit(t *testing.T) {
	tr := newTrust(t)
	well := fault.Script{TLS: tr.server(-1, 1, "127.0.0.1", "mail.example.org")}
	for name, c := range troubles(t, tr) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.play(t, well)
		})
	}
}

func troubles(t *testing.T, tr trust) map[string]trouble {
	const (
		over    = "unavailable sent" // the second relay takes it
		hello   = "EHLO"
		mail    = "EHLO MAIL RCPT DATA"
		text    = mail + " TEXT"
		secured = "EHLO STARTTLS"
	)
	at := func(step fault.Step, kind fault.Kind) fault.Script {
		return fault.Script{At: step, Kind: kind, To: "slow.example", NoPipelining: true}
	}
	dripping, lateDrip := at(fault.Banner, fault.Drip), at(fault.Dot, fault.Drip)
	dripping.DripEvery, lateDrip.DripEvery = time.Second, time.Second
	grouped, opened := at(fault.RCPT, fault.Permanent), at(fault.RCPT, fault.Temporary)
	grouped.NoPipelining, opened.NoPipelining, opened.OpenForRefused = false, false, true
	barred, barredOpened := grouped, opened
	barred.Kind, barredOpened.Kind = fault.Barred, fault.Barred
	secure := "ca=" + url.QueryEscape(tr.file)
	stripped, refused := fault.Script{TLS: tr.good(), NoSTARTTLS: true}, at(fault.AUTH, fault.Permanent)
	refused.TLS = tr.good()
	return map[string]trouble{
		"banner silent":           {script: at(fault.Banner, fault.Silence), tried: over, resting: true},
		"an octet a second":       {script: dripping, tried: over, resting: true},
		"EHLO refused":            {script: at(fault.EHLO, fault.Permanent), tried: over, heard: hello, resting: true},
		"EHLO silent":             {script: at(fault.EHLO, fault.Silence), tried: over, heard: hello, resting: true},
		"MAIL 4xx":                {script: at(fault.MAIL, fault.Temporary), tried: over, heard: "EHLO MAIL", resting: true},
		"MAIL 5xx":                {script: at(fault.MAIL, fault.Permanent), tried: over, heard: "EHLO MAIL", resting: true},
		"MAIL 421":                {script: at(fault.MAIL, fault.Leaving), tried: over, heard: "EHLO MAIL", resting: true},
		"MAIL silent":             {script: at(fault.MAIL, fault.Silence), tried: over, heard: "EHLO MAIL", resting: true},
		"RCPT 4xx":                {script: at(fault.RCPT, fault.Temporary), tried: over, heard: "EHLO MAIL RCPT"},
		"RCPT 4xx, and a 354":     {script: opened, tried: over, heard: mail},
		"RCPT 5xx":                {script: at(fault.RCPT, fault.Permanent), tried: "rejected", outcome: relay.Rejected, heard: "EHLO MAIL RCPT"},
		"RCPT 5xx in a group":     {script: grouped, tried: "rejected", outcome: relay.Rejected, heard: mail},
		"RCPT 5.7.1":              {script: at(fault.RCPT, fault.Barred), tried: over, heard: "EHLO MAIL RCPT"},
		"RCPT 5.7.1 in a group":   {script: barred, tried: over, heard: mail},
		"RCPT 5.7.1, and a 354":   {script: barredOpened, tried: over, heard: mail},
		"RCPT 421":                {script: at(fault.RCPT, fault.Leaving), tried: over, heard: "EHLO MAIL RCPT"},
		"RCPT silent":             {script: at(fault.RCPT, fault.Silence), tried: over, heard: "EHLO MAIL RCPT"},
		"DATA 4xx":                {script: at(fault.DATA, fault.Temporary), tried: over, heard: mail},
		"DATA 5xx":                {script: at(fault.DATA, fault.Permanent), tried: "rejected", outcome: relay.Rejected, heard: mail},
		"DATA 5.7.1":              {script: at(fault.DATA, fault.Barred), tried: over, heard: mail},
		"DATA 421":                {script: at(fault.DATA, fault.Leaving), tried: over, heard: mail, resting: true},
		"SIZE too small":          {script: fault.Script{Size: 400}, spoil: great, tried: over, heard: mail},
		"SIZE too small, unsaid":  {script: fault.Script{Size: 400, SizeUnsaid: true, NoPipelining: true}, spoil: great, tried: over, heard: text},
		"reset before the dot":    {script: at(fault.Content, fault.Reset), tried: "unknown", outcome: relay.Unknown, heard: text, resting: true},
		"reset after the dot":     {script: at(fault.Dot, fault.Reset), tried: "unknown", outcome: relay.Unknown, heard: text, resting: true},
		"silent after the dot":    {script: at(fault.Dot, fault.Silence), tried: "unknown", outcome: relay.Unknown, heard: text, resting: true},
		"dripping after the dot":  {script: lateDrip, tried: "unknown", outcome: relay.Unknown, heard: text, resting: true},
		"4xx after the dot":       {script: at(fault.Dot, fault.Temporary), tried: over, heard: text},
		"421 after the dot":       {script: at(fault.Dot, fault.Leaving), tried: over, heard: text, resting: true},
		"5xx after the dot":       {script: at(fault.Dot, fault.Permanent), tried: "rejected", outcome: relay.Rejected, heard: text},
		"5.7.1 after the dot":     {script: at(fault.Dot, fault.Barred), tried: over, heard: text},
		"421 on a kept one":       {script: once(at(fault.MAIL, fault.Leaving)), kept: true, tried: "sent", heard: text + " MAIL, " + text},
		"421 on a kept one, late": {script: at(fault.DATA, fault.Leaving), kept: true, tried: over, heard: text + " MAIL RCPT DATA, " + mail, resting: true},
		"MAIL 4xx, kept":          {script: at(fault.MAIL, fault.Temporary), kept: true, tried: over, heard: text + " MAIL, EHLO MAIL", resting: true},
		"RCPT 4xx, kept":          {script: at(fault.RCPT, fault.Temporary), kept: true, tried: over, heard: text + " MAIL RCPT"},
		"DATA 4xx, kept":          {script: at(fault.DATA, fault.Temporary), kept: true, tried: over, heard: text + " MAIL RCPT DATA, " + mail},
		"DATA 4.7.1, kept":        {script: at(fault.DATA, fault.Greylist), kept: true, tried: over, heard: text + " MAIL RCPT DATA"},
		"reset after it, kept":    {script: at(fault.Dot, fault.Reset), kept: true, tried: "unknown", outcome: relay.Unknown, heard: text + " MAIL RCPT DATA TEXT", resting: true},
		"silent after it, kept":   {script: at(fault.Dot, fault.Silence), kept: true, tried: "unknown", outcome: relay.Unknown, heard: text + " MAIL RCPT DATA TEXT", resting: true},
		"421 after the dot, kept": {script: at(fault.Dot, fault.Leaving), kept: true, tried: over, heard: text + " MAIL RCPT DATA TEXT", resting: true},
		"STARTTLS stripped":       {script: stripped, query: secure, tried: over, heard: hello, resting: true},
		"AUTH refused":            {script: refused, query: secure, tried: over, heard: secured + " EHLO AUTH", resting: true},
		"certificate expired":     {script: fault.Script{TLS: tr.server(-3, -2, "127.0.0.1")}, query: secure, tried: over, heard: secured, resting: true},
		"certificate's name":      {script: fault.Script{TLS: tr.good()}, query: secure + "&servername=mail.example.org", tried: over, heard: secured, resting: true},
	}
}

func great(m *mail) { m.Bytes = append(m.Bytes, strings.Repeat("and more\r\n", 50)...) }

func once(script fault.Script) fault.Script {
	script.Times = 1
	return script
}

// A life is two relays, and a clock by which one mail may leave every 100 s and a relay
// that failed is left alone for an hour.
type life struct {
	t             *testing.T
	first, second *fault.Server
	relays        *relay.Relays
	now           atomic.Int64
	mu            sync.Mutex
	tried         []string
}

const (
	betweenMails = 100_000
	leftAlone    = 3_600_000
)

func (c trouble) begin(t *testing.T) *life {
	l := &life{t: t, first: play(t, fault.Script{NoPipelining: c.script.NoPipelining}), second: play(t, fault.Script{})}
	o := facingAmply(c.script)
	o.Now, o.IdleTimeout = l.now.Load, 1000*time.Hour
	o.Breaker = relay.Breaker{Failures: 1, Cooldown: leftAlone * time.Millisecond}
	o.Pace = relay.Pace{PerSecond: 1000. / betweenMails}
	o.Hooks.Tried = func(_, result string, _ time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tried = append(l.tried, result)
	}
	first := plain(l.first)
	if c.query != "" {
		first = "smtp://acme:" + url.QueryEscape("a secret") + "@" + l.first.Addr() + "?" + c.query
	}
	l.relays = newRelays(t, o, first, plain(l.second))
	return l
}

func (c trouble) play(t *testing.T, well fault.Script) {
	l := c.begin(t)
	if c.kept {
		l.takes(l.first, "before")
	}
	l.first.Play(c.script)
	c.strike(l)
	l.paced()
	if c.script.At == fault.DATA || c.script.At == fault.Dot {
		l.first.Play(fault.Script{}) // these meet every recipient
	}
	if c.resting {
		l.takes(l.second, "while it is left alone")
	} else {
		l.takes(l.first, "right after")
	}
	l.first.Play(well)
	l.now.Add(leftAlone)
	l.takes(l.first, "when all is well again")
}

// strike sends the mail that meets the trouble.
func (c trouble) strike(l *life) {
	t := l.t
	l.tried = nil
	m := to("slow.example")
	m.Bytes = bytes.Replace(m.Bytes, []byte("Subject: code"), []byte("Subject: trouble"), 1)
	if c.spoil != nil {
		c.spoil(&m)
	}
	l.now.Add(betweenMails)
	began := time.Now()
	receipt, err := send(t.Context(), l.relays, m)
	if took := time.Since(began); took > hanging/2 {
		t.Errorf("took %v", took)
	}
	checkOutcome(t, err, c.outcome)
	if got := strings.Join(l.tried, " "); got != c.tried {
		t.Errorf("tried: %s, want %s", got, c.tried)
	}
	if next := strings.HasSuffix(c.tried, " sent"); next != (len(l.second.Received()) > 0) || next != (receipt.Relay == l.second.Addr()) {
		t.Errorf("the second relay: %d connections, and the receipt is of %q", len(l.second.Received()), receipt.Relay)
	}
	servertest.Eventually(t, "the first relay heard "+c.heard, func() bool { return heardBy(l.first) == c.heard })
	if got := l.relays.Stats()[0].Resting; got != c.resting {
		t.Errorf("left alone: %v, want %v", got, c.resting)
	}
}

// paced sends one mail too soon, of which no relay may hear.
func (l *life) paced() {
	l.t.Helper()
	before := heardBy(l.first) + heardBy(l.second)
	if _, err := send(l.t.Context(), l.relays, to("honest.example")); !isBusy(err) {
		l.t.Errorf("a mail too soon: %v, want busy", err)
	}
	if after := heardBy(l.first) + heardBy(l.second); after != before {
		l.t.Errorf("a mail too soon: the relays heard %s, and before %s", after, before)
	}
}

// takes sends a mail to somebody else, when it may leave, which this relay must take and
// the other not hear of.
func (l *life) takes(server *fault.Server, when string) {
	l.t.Helper()
	l.now.Add(betweenMails)
	l.tried = nil
	receipt, err := send(l.t.Context(), l.relays, to("honest.example"))
	if err != nil || receipt.Relay != server.Addr() || !slices.Equal(l.tried, []string{"sent"}) {
		l.t.Errorf("the mail %s: %v, tried %v; taken by the second: %v", when, err, l.tried, receipt.Relay == l.second.Addr())
	}
}

// heardBy tells the verbs that a relay heard, connection by connection.
func heardBy(s *fault.Server) string {
	var all []string
	for _, heard := range s.Received() {
		var verbs []string
		text := false
		for line := range strings.Lines(string(heard)) {
			verb, _, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
			switch {
			case text:
				text = verb != "."
			case strings.HasSuffix(verb, ":"):
				text, verbs = true, append(verbs, "TEXT")
			default:
				verbs = append(verbs, verb)
			}
		}
		all = append(all, strings.Join(verbs, " "))
	}
	return strings.Join(all, ", ")
}
