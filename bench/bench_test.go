package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/smtp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestAlternate_TwoSides_DropsTheFirstRound(t *testing.T) {
	order := ""
	n := 0.0
	side := func(name string) side {
		return func() sample {
			order += name
			n++
			return sample{rate: n}
		}
	}
	samples := alternate(2, side("A"), side("B"))
	if order != "ABABAB" {
		t.Errorf("the order is %s, want ABABAB", order)
	}
	want := [][]sample{{{rate: 3}, {rate: 5}}, {{rate: 4}, {rate: 6}}}
	if !slices.EqualFunc(samples, want, slices.Equal[[]sample]) {
		t.Errorf("%v, want %v", samples, want)
	}
}

func TestCompare_PairedRounds_SpreadOfTheRatios(t *testing.T) {
	// The machine was slow in the second round, for both.
	ours := []sample{{rate: 20}, {rate: 3}, {rate: 40}, {rate: 10}}
	theirs := []sample{{rate: 10}, {rate: 1}, {rate: 10}, {rate: 10}}
	r := compare("", "", "", rate, ours, theirs, atLeast(2.5))
	if want := (spread{1, 2.5, 4}); r.ratio != want || r.ours != 15 || r.theirs != 10 {
		t.Errorf("ratio %v of %g and %g, want %v of 15 and 10", r.ratio, r.ours, r.theirs, want)
	}
	if r := compareRecorded("", "", []float64{30, 10, 20}, 10); r.ratio != (spread{1, 2, 3}) || !r.missed() {
		t.Errorf("beside a recorded figure: %+v", r)
	}
}

func TestPrintTable_RowsAndReasons(t *testing.T) {
	for want, r := range map[string]row{
		"| µs | 1234 | p | 0.5 | 1.00 | **2.00** | 3.00 | ≤ 1.00 | **missed** |": {unit: "µs", peer: "p", ours: 1234, theirs: 0.5, ratio: spread{1, 2, 3}, required: atMost(1)},
		"| **1.00** | 0.00 | ≤ 1.00 | met |":                                     {ratio: spread{median: 1}, required: atMost(1)},
		"| **1.00** | 0.00 | ≥ 1.00 | met |":                                     {ratio: spread{median: 1}, required: atLeast(1)},
		"| **0.99** | 0.00 | ≥ 1.00 | **missed** |":                              {ratio: spread{median: 0.99}, required: atLeast(1)},
		"| **9.00** | 0.00 |  |  |":                                              {ratio: spread{median: 9}},
		"| b | not measured: no p |":                                             {name: "b", skipped: "no p"},
	} {
		var out bytes.Buffer
		if printTable(&out, []row{r}); !strings.Contains(out.String(), want+"\n") {
			t.Errorf("no line ends with %q in\n%s", want, out.String())
		}
	}
}

func TestInCalls_TwoRounds_EachNumberOnce(t *testing.T) {
	var called [20]atomic.Int64
	side := inCalls(3, 10, func(i int) error { called[i].Add(1); return nil })
	side()
	side()
	for i := range called {
		if n := called[i].Load(); n != 1 {
			t.Errorf("%d was called %d times", i, n)
		}
	}
}

// All programs start and answer as the comparisons insist that they do.
func TestRun_OneShortRound_EveryProgramAnswers(t *testing.T) {
	*rounds, *length, many = 1, 50*time.Millisecond, 5_000
	if err := run(t.Context(), []string{"refused", "admitted", "forged", "smtp", "redis", "start", "million", "suppressed", "lists", "traced", "cluster"}); err != nil && err.Error() != errMissed.Error() {
		t.Fatal(err)
	}
}

// The bare handler answers the fields that mailgate answers, and the service made by hand sends
// a mail of about the same length.
func TestPeers_SameRequest_AnswerAndMailLikeOurs(t *testing.T) {
	b := &bench{ctx: t.Context(), dir: t.TempDir()}
	t.Cleanup(b.close)
	relay := b.openSink()
	data, _ := b.newDataDir()
	ours := b.startMailgate(relay.addr, data)
	fieldsOf(t, ours.addr, http.StatusOK)
	mail := relay.octets.Load()
	fieldsOf(t, b.startOwn("./handmade", relay.addr).addr, http.StatusOK)
	if ratio := float64(relay.octets.Load()-mail) / float64(mail); ratio < 0.8 || ratio > 1.2 || relay.mails.Load() != 2 {
		t.Errorf("%d mails, the second %.2f times as long as ours", relay.mails.Load(), ratio)
	}
	want := fieldsOf(t, ours.addr, http.StatusTooManyRequests)
	if got := fieldsOf(t, b.startOwn("./bare").addr, http.StatusTooManyRequests); !slices.Equal(got, want) {
		t.Errorf("the bare handler answers\n%v\nmailgate answers\n%v", got, want)
	}
}

// The service made by hand keeps its tiers wherever it stores them.
func TestPeers_EachStore_RefusesTheSecond(t *testing.T) {
	b := &bench{ctx: t.Context(), dir: t.TempDir()}
	t.Cleanup(b.close)
	relay, redis := b.openSink(), b.startRedis()
	for _, store := range [][]string{nil, {"redis", redis.addr}, {"sqlite", b.dir + "/handmade.db"}} {
		addr := b.startOwn("./handmade", append([]string{relay.addr}, store...)...).addr
		fieldsOf(t, addr, http.StatusOK)
		if got := fieldsOf(t, addr, http.StatusTooManyRequests); !slices.Equal(got, []string{"limit", "wait_ms"}) {
			t.Errorf("%v answers %v", store, got)
		}
	}
}

// fieldsOf asks for a code and returns the names of all fields of the answer, sorted.
func fieldsOf(t *testing.T, addr string, status int) []string {
	t.Helper()
	request := must(http.NewRequest("POST", "http://"+addr+"/send-code", strings.NewReader(`{"email":"`+mailbox(0)+`"}`)))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+apiKey)
	answer := must(http.DefaultClient.Do(request))
	defer answer.Body.Close()
	text := must(io.ReadAll(answer.Body))
	if answer.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", answer.StatusCode, status, text)
	}
	var all map[string]any
	check(json.Unmarshal(text, &all))
	fields := slices.Collect(maps.Keys(all))
	if limits, ok := all["limits"].([]any); ok {
		fields = slices.AppendSeq(fields, maps.Keys(limits[0].(map[string]any)))
	}
	slices.Sort(fields)
	return fields
}

func TestDrawAttacks_EachResult_IsABarWithItsNumber(t *testing.T) {
	var results [][]*result
	for i := range attackers {
		var one []*result
		for k := range defences {
			r := new(result)
			r.mailed.Store(int64(1000*i + 10*k))
			r.served.Store(people)
			one = append(one, r)
		}
		results = append(results, one)
	}
	results[1][2].served.Store(199)
	text := drawAttacks(results)
	in := xml.NewDecoder(strings.NewReader(text))
	bars := 0
	for {
		token, err := in.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Value == "bar" || a.Value == "held" }) {
			bars++
		}
	}
	if bars != len(attackers)*len(defences) || !strings.Contains(text, ">2030</text>") || !strings.Contains(text, "199 got their code") {
		t.Errorf("%d bars in\n%s", bars, text)
	}
}

// The sink finds the code of an email in its body, and a challenge has the number that solves it.
func TestSignUp_CodeAndChallenge_AreFound(t *testing.T) {
	b := &bench{ctx: t.Context()}
	defer b.close()
	relay := b.openSink()
	relay.codes = newCodes()
	if err := smtp.SendMail(relay.addr, nil, "a@b.example", []string{"person1@home.example"}, []byte("Message-ID: <123456@x>\r\n\r\nYour code is 482913.\r\n")); err != nil {
		t.Fatal(err)
	}
	if code := relay.codes.of("person1@home.example"); code != "482913" {
		t.Errorf("the code is %q", code)
	}
	sum := sha256.Sum256([]byte("salt42"))
	token, err := solve(fmt.Appendf(nil, `{"challenge":{"altcha":{"algorithm":"SHA-256","challenge":"%x","salt":"salt","signature":"s","maxnumber":99}}}`, sum))
	if text, _ := base64.StdEncoding.DecodeString(token); err != nil || !strings.Contains(string(text), `"number":42`) {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := solve([]byte(`{"challenge":{"altcha":{"challenge":"x","maxnumber":9}}}`)); err == nil {
		t.Error("what has no solution is solved")
	}
}
